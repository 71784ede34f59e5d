"""``workspace.mcp.replace``: give an effective server another definition. SPEC §actions, §lifecycle."""

from app.actions.action import Action, ActionOutcome, Run
from app.actions.attach import AttachParams, connected, written
from app.core.definitions import parse_definition
from app.core.problems import ServerNotFound
from app.workspaces.change import Change


async def _run(run: Run, params: AttachParams) -> ActionOutcome:
    definition, workspace = parse_definition(params.server), run.workspace
    await workspace.ready()
    if definition.name not in workspace.effective.servers:
        raise ServerNotFound(definition.name)
    change = Change(
        name=definition.name,
        action=ACTION.kind,
        definition=definition,
        source="workspace",
        write=written(params.server),
        seen_generation=workspace.generation(definition.name),
    )
    return await connected(run, change)


ACTION = Action(
    kind="workspace.mcp.replace",
    params=AttachParams,
    run=_run,
    summary="Replace a server's definition: prepare the new one while the old one serves, then switch.",
    is_audited=True,
)
