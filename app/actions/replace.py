"""``workspace.mcp.replace``: give an effective server another definition. SPEC §actions, §lifecycle."""

from app.actions.action import Action, ActionOutcome, Done, Run
from app.actions.attach import AttachParams, written
from app.core.definitions import parse_definition
from app.core.problems import ServerNotFound
from app.core.summary import summary
from app.workspaces.change import Change, change_server


async def _run(run: Run, params: AttachParams) -> ActionOutcome:
    definition, workspace = parse_definition(params.server), run.workspace
    await workspace.ready()
    if definition.name not in workspace.effective.servers:
        raise ServerNotFound(definition.name)
    change = Change(
        name=definition.name,
        definition=definition,
        source="workspace",
        write=written(params.server),
        seen_generation=workspace.generation(definition.name),
    )
    server = await change_server(workspace, change, run.observe)
    assert server is not None  # noqa: S101 only a detach has no successor
    return Done({"status": 200, "server": summary(server)})


ACTION = Action(
    kind="workspace.mcp.replace",
    params=AttachParams,
    run=_run,
    summary="Replace a server's definition: prepare the new one while the old one serves, then switch.",
    is_audited=True,
)
