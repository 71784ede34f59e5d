"""``workspace.mcp.oauth.complete``: hand over the callback of a pending authorization. SPEC §oauth.

Nothing authorizes interactively yet, so nothing is ever pending.
"""

from app.actions.action import Action, ActionOutcome, Params, Run
from app.core.names import parse_server_name
from app.core.oauth_problems import OAuthNotPending


class OAuthCompleteParams(Params):
    """The server, and the whole URL that the browser was sent back to."""

    name: str
    callbackUrl: str  # noqa: N815 wire name


async def _run(run: Run, params: OAuthCompleteParams) -> ActionOutcome:
    name = parse_server_name(params.name)
    await run.workspace.ready()
    raise OAuthNotPending(name)


ACTION = Action(
    kind="workspace.mcp.oauth.complete",
    params=OAuthCompleteParams,
    run=_run,
    summary="Complete a pending authorization with the whole callback URL.",
    is_audited=True,
)
