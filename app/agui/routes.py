"""The AG-UI door: ``POST /`` and its alias ``/agui``. SPEC §agui.

Whatever is wrong before the run is known is answered by an HTTP status; everything about the action is in the
stream.
"""

from starlette.routing import Route

from app.agui.run_input import parse_run_input
from app.agui.runs import AguiRun
from app.core.names import parse_workspace_name
from app.doors.asgi import Receive, Scope, Send
from app.doors.body import read_json
from app.doors.endpoint import AsgiEndpoint, host_of, streams_of
from app.doors.presence import presence_of
from app.doors.security import principal_of


async def run_agent(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one RunAgentInput with one stream of events.

    Raises:
        Problem: nothing was sent; the last row of SPEC §problems, the workspace's rows, TooMany,
            ShuttingDown.
    """
    host, principal = host_of(scope), principal_of(scope)
    asked = parse_run_input(await read_json(scope, receive, limit=host.settings.max_body))
    name = parse_workspace_name(asked.workspace)
    principal.require(name)
    run = AguiRun(host, principal, host.manager.workspace(name), asked)
    await run.answer(streams_of(scope), receive, send, presence_of(scope))


RUN_AGENT = AsgiEndpoint(run_agent)
ROUTES = (Route("/", RUN_AGENT, methods=["POST"]), Route("/agui", RUN_AGENT, methods=["POST"]))
