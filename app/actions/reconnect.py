"""``workspace.mcp.reconnect``: connect an effective server anew, with the definition it has. SPEC §actions."""

from app.actions.action import Action, ActionOutcome, Run
from app.actions.attach import connected
from app.actions.detach import NameParams
from app.core.names import parse_server_name
from app.core.problems import ServerNotFound
from app.workspaces.change import Change


async def _run(run: Run, params: NameParams) -> ActionOutcome:
    name, workspace = parse_server_name(params.name), run.workspace
    await workspace.ready()
    effective = workspace.effective.servers.get(name)
    if effective is None:
        raise ServerNotFound(name)
    if effective.problem is not None:
        raise effective.problem.again()
    change = Change(
        name=name,
        action=ACTION.kind,
        definition=effective.definition,
        source=effective.source,
        write=None,
        seen_generation=workspace.generation(name),
    )
    return await connected(run, change)


ACTION = Action(
    kind="workspace.mcp.reconnect",
    params=NameParams,
    run=_run,
    summary="Connect a server anew and list it afresh; its definition stays.",
    is_audited=True,
)
