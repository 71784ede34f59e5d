"""The application around the routes: the gate, and Problems where no route answers. SPEC §security."""

from collections.abc import Awaitable, Sequence
from http import HTTPStatus

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from typing_extensions import override

from app.actions.action import Host
from app.doors.asgi import SENDER, Endpoint, Receive, Scope, Send
from app.doors.endpoint import AsgiEndpoint, Exposition
from app.doors.problem_response import PROBLEM_JSON, blank_document, logged_internal, send_problem
from app.doors.security import Gate
from app.doors.streams import OpenStreams
from app.tokens import Tokens


class Application(FastAPI):
    """The gate, the routes, and a Problem where neither answers.

    FastAPI's own stack of middleware has no part in it: every route is an ASGI endpoint that answers what it raises.
    """

    def __init__(
        self,
        routes: Sequence[BaseRoute],
        *,
        host: Host,
        tokens: Tokens,
        streams: OpenStreams,
        exposition: Exposition,
    ) -> None:
        # FastAPI writes no OpenAPI here: the document is one of the routes, and tests hold it against them.
        super().__init__(routes=list(routes), openapi_url=None, redirect_slashes=False)
        self.serves = host
        self.streams = streams
        self.exposition = exposition
        ours = [
            each for each in routes if isinstance(each, Route) and isinstance(each.endpoint, AsgiEndpoint)
        ]
        self._plain: dict[tuple[str, str], Endpoint] = {
            (method, each.path): each.endpoint
            for each in ours
            if not each.param_convertors
            for method in each.methods or ()
        }
        """Endpoints by method and path."""
        self._patterns = [
            (each.methods or set(), each.path_regex.match, each.endpoint)
            for each in ours
            if each.param_convertors
        ]
        """Those of paths with parameters, which are texts; the first that matches answers."""
        self._gate = Gate(self._routed, settings=host.settings, tokens=tokens)

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["app"] = self
        await self._gate(scope, receive, scope.pop(SENDER, send))

    def _routed(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http":
            return self._otherwise(scope, receive, send)
        method, path = scope["method"], scope["path"]
        endpoint = self._plain.get((method, path))
        if endpoint is not None:
            return endpoint(scope, receive, send)
        for methods, match, parametrised in self._patterns:
            if method in methods and (found := match(path)) is not None:
                scope["path_params"] = found.groupdict()
                return parametrised(scope, receive, send)
        return self._otherwise(scope, receive, send)

    async def _otherwise(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.router(scope, receive, send)
        except HTTPException as refusal:
            await _unrouted(refusal)(scope, receive, send)
        except Exception as failure:  # noqa: BLE001 the border of a request: a bug answers it, and no other
            await send_problem(send, logged_internal(failure))


def build_application(
    routes: Sequence[BaseRoute],
    *,
    host: Host,
    tokens: Tokens,
    streams: OpenStreams,
    exposition: Exposition,
) -> Application:
    """Return the application that serves these routes for a host that can serve already."""
    return Application(routes, host=host, tokens=tokens, streams=streams, exposition=exposition)


def _unrouted(refusal: HTTPException) -> Response:
    """Return the answer for a path that no route has, or for a method that the path's route does not take."""
    status, headers = HTTPStatus(refusal.status_code), dict(refusal.headers or {})
    detail = {
        HTTPStatus.NOT_FOUND: "There is nothing at this path. GET /openapi.json lists what there is.",
        HTTPStatus.METHOD_NOT_ALLOWED: f"This path takes {headers.get('Allow', 'other methods')}.",
    }.get(status, status.description)
    return _response(orjson.dumps(blank_document(status, detail)), status, headers)


def _response(body: bytes, status: int, headers: dict[str, str]) -> Response:
    return Response(body, status, {"cache-control": "no-store", **headers}, PROBLEM_JSON.decode())
