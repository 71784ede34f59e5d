"""``workspace.mcp.detach``: take a server away, or cancel its preparation. SPEC §actions, §effective."""

from app.actions.action import Action, ActionOutcome, Done, Params, Run
from app.core.effective import after_detach
from app.core.names import parse_server_name
from app.core.problems import ServerNotFound
from app.workspaces.change import Change, Write, change_server
from app.workspaces.workspace import Workspace


class NameParams(Params):
    """The server that is meant."""

    name: str


async def _run(run: Run, params: NameParams) -> ActionOutcome:
    name, workspace = parse_server_name(params.name), run.workspace
    await workspace.ready()
    if name not in workspace.effective.servers and not _cancelled(workspace, name):
        # An attach that has begun to commit completes; then there is something to detach.
        await workspace.commits_done()
        if name not in workspace.effective.servers:
            raise ServerNotFound(name)
    if name in workspace.effective.servers:
        change = Change(
            name=name,
            action=ACTION.kind,
            definition=None,
            source="workspace",
            write=Write(after_detach(name, workspace.effective.defaults)),
            seen_generation=workspace.generation(name),
        )
        await change_server(workspace, change, run.observe, run.trail)
        _cancelled(workspace, name)
    return Done({"status": 200, "name": name, "detached": True})


def _cancelled(workspace: Workspace, name: str) -> bool:
    """Cancel what is being prepared or waits for a sign-in; return whether there was anything."""
    was_pending = workspace.pending.drop(name)
    return workspace.preparations.cancel(name) or was_pending


ACTION = Action(
    kind="workspace.mcp.detach",
    params=NameParams,
    run=_run,
    summary="Detach a server; a service default is hidden by a tombstone.",
    is_audited=True,
)
