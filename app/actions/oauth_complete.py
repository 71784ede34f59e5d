"""``workspace.mcp.oauth.complete``: hand over the callback of a pending authorization. SPEC §oauth.

What waited goes on in this run: a change is prepared and committed, an operation has its refused request sent again.
"""

from typing import assert_never

from app.actions.action import Action, ActionOutcome, Params, Run
from app.actions.attach import answer
from app.actions.operation_outcome import action_outcome
from app.core.interrupts import ResumeEntry
from app.core.names import parse_server_name
from app.workspaces.change import complete_change
from app.workspaces.pending import ParkedChange, ParkedQuestion


class OAuthCompleteParams(Params):
    """The server, and the whole URL that the browser was sent back to."""

    name: str
    callbackUrl: str  # noqa: N815 wire name


async def _run(run: Run, params: OAuthCompleteParams) -> ActionOutcome:
    name, callback_url = parse_server_name(params.name), params.callbackUrl
    await run.workspace.ready()
    parked = run.workspace.pending.find(name)
    match parked:
        case ParkedChange():
            return answer(await complete_change(run.workspace, parked, callback_url, run.observe, run.trail))
        case ParkedQuestion(interrupt=interrupt):
            callback = ResumeEntry(interrupt, "resolved", {"callbackUrl": callback_url})
            board = run.host.boards.of(run.workspace)
            return action_outcome(await board.resume([callback], observe=run.observe))
        case _:
            assert_never(parked)


ACTION = Action(
    kind="workspace.mcp.oauth.complete",
    params=OAuthCompleteParams,
    run=_run,
    summary="Complete a pending authorization with the whole callback URL.",
    is_audited=True,
)
