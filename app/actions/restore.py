"""``workspace.mcp.restore``: drop the workspace's entry, so that the service default shows again. SPEC §effective."""

from app.actions.action import Action, ActionOutcome, Run
from app.actions.attach import connected
from app.actions.detach import NameParams
from app.core.names import parse_server_name
from app.core.problems import ServerNotFound
from app.workspaces.change import Change, Write


async def _run(run: Run, params: NameParams) -> ActionOutcome:
    name, workspace = parse_server_name(params.name), run.workspace
    await workspace.ready()
    default = workspace.effective.defaults.get(name)
    if default is None:
        raise ServerNotFound(name)
    change = Change(
        name=name,
        action=ACTION.kind,
        definition=default,
        source="service",
        write=Write(None),
        seen_generation=workspace.generation(name),
    )
    return await connected(run, change)


ACTION = Action(
    kind="workspace.mcp.restore",
    params=NameParams,
    run=_run,
    summary="Drop the workspace's own entry of a server, so that the service default shows again.",
    is_audited=True,
)
