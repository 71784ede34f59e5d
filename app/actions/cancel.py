"""``workspace.mcp.cancel``: end an operation that runs or waits, and tell its peer to stop. SPEC §calls."""

from app.actions.action import Action, ActionOutcome, Done, Params, Run
from app.core.problem import Stage


class CancelParams(Params):
    """Which operation."""

    operation: str


async def _run(run: Run, params: CancelParams) -> ActionOutcome:
    run.host.boards.of(run.workspace).cancel(params.operation)
    return Done({"status": 200, "operation": params.operation, "cancelled": True})


ACTION = Action(
    kind="workspace.mcp.cancel",
    params=CancelParams,
    run=_run,
    summary="Cancel an operation; its open questions are dropped and the run that waits for it ends.",
    stage=Stage.OPERATION,
)
