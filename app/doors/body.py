"""Reading one JSON request body: declared as JSON, bounded in size, time and depth. SPEC §security, §limits.

Members that occur twice: the last one counts, as in every browser. Numbers that a 64-bit integer or a double
cannot hold are refused, because a call's arguments are never changed (SPEC §calls).
"""

import asyncio
import json
import re
from typing import Any

import orjson

from app.core.door_problems import BodyTooLarge, InputMalformed, MediaTypeUnsupported
from app.core.json_value import Json
from app.doors.asgi import JSON, WHOLE_BODY, Receive, Scope, header_values, headers_of

BODY_TIMEOUT_S = 30.0
"""How long a client may take to send one body."""
DISCARDED_MAX = 8 * 1024 * 1024
"""Bytes beyond the limit that are read and dropped: a client that writes before it reads sees the answer."""
DEPTH_MARGIN = 32
"""Levels that we put around what a client sent, in events and in requests to peers."""
_JSON = [JSON]
_JSON_TYPE = re.compile(rb"application/json[ \t]*(;.*)?", re.IGNORECASE | re.DOTALL)
_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_DIGITS = b"0" * 19
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**64 - 1


class ClientGone(Exception):
    """The client disconnected before its request was complete; there is nobody to answer."""


class BodyLate(Exception):
    """The body did not arrive in time; answered with 408."""


async def read_json(scope: Scope, receive: Receive, *, limit: int) -> Json:
    """Return the parsed body.

    Raises:
        MediaTypeUnsupported: it is not declared as JSON.
        BodyTooLarge: it is over the limit, in bytes; the rest was dropped as far as it came in time.
        InputMalformed: it is no JSON that we can hold to the letter.
        BodyLate: it did not arrive in time.
        ClientGone: the client disconnected.
    """
    _require_json_type(scope)
    whole: bytes | None = scope.get(WHOLE_BODY)
    if whole is None or len(whole) > limit:
        whole = await read_bytes(scope, receive, limit=limit)
    return parse_json(whole)


async def read_bytes(scope: Scope, receive: Receive, *, limit: int) -> bytes:
    """Return the body's bytes, counted while they arrive.

    Raises:
        BodyTooLarge: see ``read_json``.
        BodyLate: likewise.
        ClientGone: likewise.
    """
    if header_values(scope, b"expect") and declared_length(scope) > limit:
        raise BodyTooLarge(limit=limit)  # The client waits for our word before it sends anything.
    whole: bytes | None = scope.get(WHOLE_BODY)
    if whole is not None and len(whole) <= limit:
        return whole
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):  # Half of what anyio.fail_after costs.
            return await _counted(receive, limit)
    except TimeoutError:
        raise BodyLate from None


def declared_length(scope: Scope) -> int:
    """Return what ``Content-Length`` says, or 0 where it says nothing."""
    declared = header_values(scope, b"content-length")
    return int(declared[0]) if declared and declared[0].isdigit() else 0


def has_body(scope: Scope) -> bool:
    """Return whether the request announces a body. RFC 9112 §6.3."""
    return declared_length(scope) > 0 or bool(header_values(scope, b"transfer-encoding"))


def parse_json(body: bytes) -> Json:
    """Return the JSON value of the bytes.

    Raises:
        InputMalformed: not JSON, not UTF-8, nested too deep, or with a number that would have to be changed.
    """
    try:
        value: Json = orjson.loads(body)
    except orjson.JSONDecodeError as failure:
        raise InputMalformed([("", f"not JSON: {failure.msg} (at character {failure.pos})")]) from None
    if body.count(b"[") + body.count(b"{") > DEPTH_MARGIN:
        _require_shallow(value)
    if _LONG_DIGITS in body.translate(_DIGITS_ALIKE):
        _require_exact_integers(body)
    return value


async def _counted(receive: Receive, limit: int) -> bytes:
    message = await _next(receive)
    first: bytes = message.get("body", b"")
    if not message.get("more_body", False) and len(first) <= limit:
        return first
    received, size = [first], len(first)
    while message.get("more_body", False):
        message = await _next(receive)
        size += len(message.get("body", b""))
        if size > limit:
            received.clear()
            if size > limit + DISCARDED_MAX:
                break
        else:
            received.append(message.get("body", b""))
    if size > limit:
        raise BodyTooLarge(limit=limit)
    return b"".join(received)


async def _next(receive: Receive) -> Any:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message


def _require_json_type(scope: Scope) -> None:
    declared = headers_of(scope).get(b"content-type")
    if declared != _JSON and (
        declared is None or len(declared) != 1 or not _JSON_TYPE.fullmatch(declared[0].strip())
    ):
        raise MediaTypeUnsupported


def _require_shallow(value: Json) -> None:
    """Return where the value can be written again with our own levels around it."""
    for _ in range(DEPTH_MARGIN):
        value = [value]
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise InputMalformed([("", "nested too deep")]) from None


def _require_exact_integers(body: bytes) -> None:
    """Return where every integer fits 64 bits; orjson turns a bigger one into a float without a word."""

    def checked(digits: str) -> int:
        if len(digits) > len(str(_INTEGER_MIN)) or not _INTEGER_MIN <= int(digits) <= _INTEGER_MAX:
            raise InputMalformed([("", "an integer does not fit 64 bits; send it as a string")])
        return 0

    json.loads(body, parse_int=checked, parse_float=lambda _: 0.0)
