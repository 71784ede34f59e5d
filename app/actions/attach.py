"""``workspace.mcp.attach``: add a server that is not effective yet. SPEC §actions, §lifecycle."""

from typing import Any, assert_never

import orjson

from app.actions.action import Action, ActionOutcome, Done, Params, Run
from app.core.attachments import Attached
from app.core.definitions import parse_definition
from app.core.problems import ServerExists
from app.core.summary import summary
from app.workspaces.change import Change, ChangeOutcome, Committed, Write, change_server
from app.workspaces.pending import ParkedChange, authorization


class AttachParams(Params):
    """The definition to attach."""

    server: dict[str, Any]


def written(server: dict[str, Any]) -> Write:
    """Return the write that makes this definition durable, as it was sent."""
    return Write(Attached(orjson.dumps(server).decode()))


async def connected(run: Run, change: Change) -> Done:
    """Make a change that leaves a server connected, and answer for it.

    Raises:
        Problem: as ``change_server``; nothing was changed.
    """
    return answer(await change_server(run.workspace, change, run.observe, run.trail))


def answer(outcome: ChangeOutcome) -> Done:
    """Return the server's summary where it is connected, else where a person has to sign in first."""
    match outcome:
        case Committed(change, server):
            assert server is not None  # noqa: S101 only a detach has no successor
            return Done({"status": 201 if change.is_attach else 200, "server": summary(server)})
        case ParkedChange(attempt=attempt):
            return Done({"status": 202, "authorization": authorization(attempt)})
        case _:
            assert_never(outcome)


async def _run(run: Run, params: AttachParams) -> ActionOutcome:
    definition, workspace = parse_definition(params.server), run.workspace
    await workspace.ready()
    if definition.name in workspace.effective.servers:
        raise ServerExists(definition.name)
    change = Change(
        name=definition.name,
        action=ACTION.kind,
        definition=definition,
        source="workspace",
        write=written(params.server),
        seen_generation=workspace.generation(definition.name),
        is_attach=True,
    )
    return await connected(run, change)


ACTION = Action(
    kind="workspace.mcp.attach",
    params=AttachParams,
    run=_run,
    summary="Attach a server: prepare it completely, store its definition, publish it.",
    is_audited=True,
)
