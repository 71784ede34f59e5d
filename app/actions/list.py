"""``workspace.mcp.list``: every effective server, connected or not, and what is detached or pending. SPEC §actions."""

from app.actions.action import Action, ActionOutcome, Done, NoParams, Run
from app.core.json_value import Json
from app.core.summary import summary
from app.workspaces.pending import authorization


async def _run(run: Run, _params: NoParams) -> ActionOutcome:
    snapshot = await run.workspace.ready()
    servers: list[Json] = [summary(server) for _, server in sorted(snapshot.servers.items())]
    detached: list[Json] = list(run.workspace.effective.detached)
    pending: list[Json] = [
        {"name": each.name, "action": each.action, "authorization": authorization(each.attempt)}
        for each in run.workspace.pending.all()
    ]
    return Done({"servers": servers, "detached": detached, "pending": pending})


ACTION = Action(
    kind="workspace.mcp.list",
    params=NoParams,
    run=_run,
    summary="List every effective server of the workspace, the detached names and the pending authorizations.",
)
