"""``workspace.mcp.read``: what an address names: index, resource, prompt or document. SPEC §addresses."""

from app.actions.action import Action, ActionOutcome, Params, Run
from app.actions.operation_outcome import action_outcome
from app.core.problem import Stage
from app.operations import reads


class ReadParams(Params):
    """Which address."""

    uri: str


async def _run(run: Run, params: ReadParams) -> ActionOutcome:
    board = run.host.boards.of(run.workspace)
    return action_outcome(await reads.read(board, params.uri, observe=run.observe, thread_id=run.thread_id))


ACTION = Action(
    kind=reads.READ,
    params=ReadParams,
    run=_run,
    summary="Read an address: a server's indexes, one resource, one prompt, or a server's document.",
    stage=Stage.OPERATION,
)
