"""The REST door: every route, in one table. SPEC §agui. What they do is in ``workspaces`` and ``daemon``."""

from collections.abc import Iterator, Mapping

from starlette.routing import Route

from app.doors.asgi import Receive, Scope, Send
from app.doors.endpoint import AsgiEndpoint, Handler
from app.rest import daemon, workspaces
from app.rest.audit import show_audit

WORKSPACE = "/v1/workspaces/{workspace}"
SERVER = f"{WORKSPACE}/servers/{{name}}"

_TABLE: tuple[tuple[str, str, Handler], ...] = (
    ("POST", f"{WORKSPACE}/actions", workspaces.act),
    ("POST", f"{WORKSPACE}/interactions/{{interrupt}}", workspaces.answer_interrupt),
    ("GET", f"{WORKSPACE}/operations/{{operation}}", workspaces.show_operation),
    ("GET", f"{WORKSPACE}/servers", workspaces.list_servers),
    ("POST", f"{WORKSPACE}/servers", workspaces.attach),
    ("PUT", SERVER, workspaces.replace),
    ("DELETE", SERVER, workspaces.detach),
    ("POST", f"{SERVER}/reconnect", workspaces.reconnect),
    ("POST", f"{SERVER}/oauth/complete", workspaces.complete_authorization),
    ("GET", "/v1/workspaces", daemon.list_workspaces),
    ("GET", "/v1/audit", show_audit),
    ("GET", "/v1/schemas/server-definition", daemon.definition_schema),
    ("GET", "/openapi.json", daemon.openapi),
    ("GET", "/metrics", daemon.metrics),
    ("GET", "/healthz", daemon.alive),
    ("GET", "/readyz", daemon.ready),
)


def _routes() -> Iterator[Route]:
    """Yield one route for each path, so that 405 names every method the path takes."""
    by_path: dict[str, dict[str, Handler]] = {}
    for method, path, handler in _TABLE:
        by_path.setdefault(path, {})[method] = handler
    for path, handlers in by_path.items():
        yield Route(path, AsgiEndpoint(_by_method(handlers)), methods=list(handlers))


def _by_method(handlers: Mapping[str, Handler]) -> Handler:
    if len(handlers) == 1:
        return next(iter(handlers.values()))

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        method: str = scope["method"]
        await handlers["GET" if method == "HEAD" else method](scope, receive, send)

    return dispatch


ROUTES = tuple(_routes())
