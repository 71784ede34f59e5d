"""Problems as ``application/problem+json``, before a stream and on REST. SPEC §problems; RFC 9457, RFC 9110.

A route or method that does not exist is no Problem of SPEC's table: it is answered with ``about:blank``.
"""

import uuid
from http import HTTPStatus

import orjson
import structlog

from app.core.json_value import JsonObject
from app.core.problem import Problem, Stage
from app.core.problems import Internal
from app.doors.asgi import Headers, Send, send_whole

log = structlog.get_logger("plurnk.doors")

PROBLEM_JSON = b"application/problem+json"
RETRY_AFTER_S = b"1"
_CHALLENGED = HTTPStatus.UNAUTHORIZED
_RETRY_LATER = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_CLOSING = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE})
"""Answers given while the client may still be sending: the connection cannot carry another request."""


async def send_problem(
    send: Send, problem: Problem, *, stage: Stage = Stage.MANAGEMENT, headers: Headers = ()
) -> None:
    """Answer with the Problem's document and its status."""
    await _send_document(send, problem.status, problem.document(stage), headers)


async def send_blank_problem(send: Send, status: HTTPStatus, detail: str, *, headers: Headers = ()) -> None:
    """Answer with a Problem that says no more than its HTTP status does."""
    await _send_document(send, status, blank_document(status, detail), headers)


def blank_document(status: HTTPStatus, detail: str) -> JsonObject:
    """Return a Problem that is none of SPEC's kinds. RFC 9457 §4.2.1."""
    return {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}


def logged_internal(failure: BaseException) -> Internal:
    """Return the Problem of a bug of ours after logging the failure under the Problem's trace id."""
    trace = uuid.uuid4().hex
    log.error("internal-failure", trace=trace, exc_info=failure)
    return Internal(trace)


async def _send_document(send: Send, status: int, document: JsonObject, headers: Headers) -> None:
    added: list[tuple[bytes, bytes]] = list(headers)
    if status == _CHALLENGED:
        added.append((b"www-authenticate", b'Bearer realm="plurnk-mcpd"'))
    if status in _RETRY_LATER:
        added.append((b"retry-after", RETRY_AFTER_S))
    if status in _CLOSING:
        added.append((b"connection", b"close"))
    await send_whole(send, status, orjson.dumps(document), media_type=PROBLEM_JSON, headers=added)
