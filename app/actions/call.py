"""``workspace.mcp.call``: call one enabled tool of a server. SPEC §calls."""

from typing import Any

from pydantic import Field

from app.actions.action import Action, ActionOutcome, Params, Run
from app.actions.operation_outcome import action_outcome
from app.core.names import parse_server_name
from app.core.problem import Stage
from app.operations import tool_call


class CallParams(Params):
    """Which tool, with what."""

    server: str
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Any JSON object: taken as it is, judged by the tool's schema."""


async def _run(run: Run, params: CallParams) -> ActionOutcome:
    board, server = run.host.boards.of(run.workspace), params.server
    if server not in run.workspace.snapshot.servers:
        parse_server_name(server, field="server")
    rest = await tool_call.call(
        board, server, params.tool, params.arguments, observe=run.observe, thread_id=run.thread_id
    )
    return action_outcome(rest)


ACTION = Action(
    kind=tool_call.KIND,
    params=CallParams,
    run=_run,
    summary="Call a tool: at once where its effect is read, after consent where it is host.",
    stage=Stage.OPERATION,
)
