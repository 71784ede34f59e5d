"""One route's handler as a plain ASGI endpoint, with everything it may raise answered. SPEC §problems.

FastAPI's own function routes would build dependencies, a response model and two exit stacks for every
request.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from typing import Final

from app.actions.action import Host
from app.core import trace_context
from app.core.problem import Problem
from app.doors.asgi import Receive, Scope, Send, header_values, headers_of
from app.doors.body import BodyLate, ClientGone
from app.doors.problem_response import logged_internal, send_blank_problem, send_problem
from app.doors.streams import OpenStreams

Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
Exposition = Callable[[], bytes]
"""Gives the metrics in the text format of Prometheus."""
_NOBODY: Final = nullcontext()


class AsgiEndpoint:
    """An ASGI endpoint around a handler that has sent nothing where it raises."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.__name__ = handler.__name__

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            if b"traceparent" in headers_of(scope):
                with called_by(scope):
                    await self._handler(scope, receive, send)
            else:
                await self._handler(scope, receive, send)
        except Problem as problem:
            await send_problem(send, problem)
        except ClientGone:
            return
        except BodyLate:
            await send_blank_problem(send, HTTPStatus.REQUEST_TIMEOUT, "The body did not arrive in time.")
        except Exception as failure:  # noqa: BLE001 the border of a request: a bug answers it, and no other
            await send_problem(send, logged_internal(failure))


def host_of(scope: Scope) -> Host:
    """Return the host that the application serves."""
    host: Host = scope["app"].serves
    return host


def streams_of(scope: Scope) -> OpenStreams:
    """Return the registry of requests in flight."""
    streams: OpenStreams = scope["app"].streams
    return streams


def exposition_of(scope: Scope) -> bytes:
    """Return the metrics as they are now."""
    exposition: Exposition = scope["app"].exposition
    return exposition()


def called_by(scope: Scope) -> AbstractContextManager[None]:
    """Make the request a part of its caller's trace during the block, where it says that it is. SPEC §observe."""
    parents = header_values(scope, b"traceparent")
    states = header_values(scope, b"tracestate")
    context = trace_context.parse(
        [value.decode("latin-1") for value in parents], [value.decode("latin-1") for value in states]
    )
    return _NOBODY if context is None else host_of(scope).telemetry.tracer.called(context)
