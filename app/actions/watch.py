"""``workspace.mcp.watch``: a long run that shows the state as it changes. SPEC §actions, §agui.

The doors stream every change to every open run; this one only stays open.
"""

from typing import Annotated

import anyio
from pydantic import Field

from app.actions.action import Action, ActionOutcome, Done, Params, Run


class WatchParams(Params):
    """How long to watch; without ``seconds`` until the client leaves."""

    seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = None


async def _run(_run: Run, params: WatchParams) -> ActionOutcome:
    if params.seconds is None:
        await anyio.sleep_forever()
    else:
        await anyio.sleep(params.seconds)
    return Done({"status": 200})


ACTION = Action(
    kind="workspace.mcp.watch",
    params=WatchParams,
    run=_run,
    summary="Stay open and stream the changes of the workspace's state.",
)
