"""The application around the routes: the gate, and Problems where no route answers. SPEC §security."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus

import orjson
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from app.core.problem import Problem
from app.doors.problem_response import PROBLEM_JSON, blank_document, logged_internal
from app.doors.security import Gate
from app.doors.streams import OpenStreams
from app.settings import Settings
from app.tokens import Tokens

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def build_application(
    routes: Sequence[BaseRoute], *, settings: Settings, tokens: Tokens, lifespan: Lifespan
) -> FastAPI:
    """Return the application; ``lifespan`` puts the ``Host`` into ``state.host`` once it can serve.

    ``state.streams`` is the registry of requests in flight: ``lifespan`` enters its ``running()`` and, at the
    end, calls its ``end_all``. There is no generated OpenAPI: the documents of the routes are one of the
    routes.
    """
    application = FastAPI(
        routes=list(routes),
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        exception_handlers={HTTPException: _unrouted, Exception: _failed},
    )
    application.add_middleware(Gate, settings=settings, tokens=tokens)
    application.state.settings = settings
    application.state.tokens = tokens
    application.state.streams = OpenStreams(limit=settings.max_streams)
    application.state.host = None
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
