"""The application around the routes: the gate, and Problems where no route answers. SPEC §security."""

from collections.abc import Sequence
from http import HTTPStatus

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from app.actions.action import Host
from app.core.problem import Problem
from app.doors.endpoint import Exposition
from app.doors.problem_response import PROBLEM_JSON, blank_document, logged_internal
from app.doors.security import Gate
from app.doors.streams import OpenStreams
from app.tokens import Tokens


def build_application(
    routes: Sequence[BaseRoute],
    *,
    host: Host,
    tokens: Tokens,
    streams: OpenStreams,
    exposition: Exposition,
) -> FastAPI:
    """Return the application that serves these routes for a host that can serve already.

    FastAPI writes no OpenAPI here: the document is one of the routes, and tests hold it against them.
    """
    application = FastAPI(
        routes=list(routes),
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _unrouted, Exception: _failed},
    )
    application.add_middleware(Gate, settings=host.settings, tokens=tokens)
    application.state.host = host
    application.state.streams = streams
    application.state.exposition = exposition
    return application


async def _unrouted(_request: Request, refusal: Exception) -> Response:
    """Answer a path that no route has, or a method that the path's route does not take."""
    status, headers = HTTPStatus.NOT_FOUND, {}
    if isinstance(refusal, HTTPException):
        status, headers = HTTPStatus(refusal.status_code), dict(refusal.headers or {})
    detail = {
        HTTPStatus.NOT_FOUND: "There is nothing at this path. GET /openapi.json lists what there is.",
        HTTPStatus.METHOD_NOT_ALLOWED: f"This path takes {headers.get('Allow', 'other methods')}.",
    }.get(status, status.description)
    return _response(orjson.dumps(blank_document(status, detail)), status, headers)


async def _failed(_request: Request, failure: Exception) -> Response:
    """Answer a bug outside every route's own border."""
    problem: Problem = logged_internal(failure)
    return _response(orjson.dumps(problem.document()), problem.status, {})


def _response(body: bytes, status: int, headers: dict[str, str]) -> Response:
    return Response(body, status, {"cache-control": "no-store", **headers}, PROBLEM_JSON.decode())
