"""The application around the routes: the gate, and Problems where no route answers. SPEC §security."""

from collections.abc import Awaitable, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from typing_extensions import override

from app.actions.action import Host
from app.doors.asgi import SENDER, Receive, Scope, Send
from app.doors.endpoint import AsgiEndpoint, Exposition
from app.doors.problem_response import PROBLEM_JSON, blank_document, logged_internal, send_problem
from app.doors.security import Gate
from app.doors.streams import OpenStreams
from app.tokens import Tokens

REMEMBERED_MAX = 256
"""Methods and paths whose routes are remembered."""


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
        self._found = lru_cache(maxsize=REMEMBERED_MAX)(self._find)
        self._gate = Gate(self._routed, settings=host.settings, tokens=tokens)

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["app"] = self
        await self._gate(scope, receive, scope.pop(SENDER, send))

    def _routed(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        try:
            endpoint, scope["path_params"] = self._found(scope["method"], scope["path"])
        except LookupError:  # Not even a method has what is no request.
            return self._otherwise(scope, receive, send)
        return endpoint(scope, receive, send)

    async def _otherwise(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self.router(scope, receive, send)
        except HTTPException as refusal:
            await _unrouted(refusal)(scope, receive, send)
        except Exception as failure:  # noqa: BLE001 the border of a request: a bug answers it, and no other
            await send_problem(send, logged_internal(failure))

    def _find(self, method: str, path: str) -> tuple[AsgiEndpoint, Mapping[str, str]]:
        """Return what answers such requests, whatever happens, and the parameters of their path.

        Raises:
            LookupError: nothing does; the router says why.
        """
        for route in self.router.routes:
            match, found = route.matches({"type": "http", "method": method, "path": path})
            if match is Match.FULL and isinstance(endpoint := found["endpoint"], AsgiEndpoint):
                return endpoint, found["path_params"]
        raise LookupError(path)


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
