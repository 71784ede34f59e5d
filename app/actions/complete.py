"""``workspace.mcp.complete``: suggestions for an argument of a prompt or resource template. SPEC §actions.

MCP 2026-07-28 server/utilities/completion.
"""

from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field

from app.actions.action import Action, ActionOutcome, Params, Run
from app.actions.operation_outcome import action_outcome
from app.core.json_value import JsonObject
from app.core.names import parse_server_name
from app.core.problem import Stage
from app.operations import reads


class PromptReference(Params):
    """A prompt by its name."""

    type: Literal["ref/prompt"]
    name: str
    title: str | None = None


class ResourceReference(Params):
    """A resource or resource template by its URI."""

    type: Literal["ref/resource"]
    uri: str


class Argument(Params):
    """The argument that is being typed."""

    name: str
    value: str


def _first_fault(given: Any) -> Any:
    """Return the first member that is no text alone, where there is one: a report of all of them is costly."""
    members = cast("dict[str, object]", given) if isinstance(given, dict) else {}
    wrong = next((name for name, value in members.items() if not isinstance(value, str)), None)
    return given if wrong is None else {wrong: members[wrong]}


class Context(Params):
    """What was chosen before."""

    arguments: Annotated[dict[str, str], BeforeValidator(_first_fault)] | None = None


class CompleteParams(Params):
    """What to complete, where."""

    server: str
    ref: Annotated[PromptReference | ResourceReference, Field(discriminator="type")]
    argument: Argument
    context: Context | None = None


async def _run(run: Run, params: CompleteParams) -> ActionOutcome:
    server = parse_server_name(params.server, field="server")
    asked: JsonObject = params.model_dump(exclude={"server"}, exclude_none=True)
    rest = await reads.complete(run.host.boards.of(run.workspace), server, asked, observe=run.observe)
    return action_outcome(rest)


ACTION = Action(
    kind=reads.COMPLETE,
    params=CompleteParams,
    run=_run,
    summary="Suggest values for an argument of a prompt or of a resource template.",
    stage=Stage.OPERATION,
)
