"""JSON-RPC messages of MCP 2026-07-28 as bytes, both ways, without any I/O. SPEC §revision, §connection.

Encodes our requests with the ``_meta`` every one of them carries, and decides once what the oddities of
foreign JSON mean. Not here: framing (``sse``, ``stdio``), HTTP headers and whose answer a message is.

What a peer sends is read like this:

- bytes that are not UTF-8 and unpaired surrogates become U+FFFD; a byte order mark is dropped;
- of duplicate keys the last one counts; integers beyond 64 bits become the nearest double;
- NaN, Infinity, numbers beyond a double, more than ``DEPTH_MAX`` levels, more than ``BRACKETS_MAX`` arrays and
  objects: the message is ``Malformed``;
- a null ``id``, ``method``, ``params``, ``result`` or ``error`` counts as absent;
- a batch is ``Malformed``: this revision has none.
"""

import gc
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, TypeAlias

import orjson

from app.core.answers import RemoteError, RequestNotSent, Result, plain_number
from app.core.json_value import Json, JsonObject
from app.core.value import value

REVISION: Final = "2026-07-28"
CLIENT_INFO: Final[JsonObject] = {"name": "plurnk-mcpd", "version": version("plurnk-mcpd")}
DEPTH_MAX: Final = 200
"""Levels of nesting a message may have; orjson writes 254, and our own envelopes need some of them."""
BRACKETS_MAX: Final = 500_000
"""Opening brackets a message may have, those in its texts counted too: each array and each object costs time and
twenty times its bytes, so that 16 MiB of empty ones would hold up everybody for a second."""
BIG_MESSAGE: Final = 256 * 1024
"""Bytes from which parsing pauses the garbage collector."""
SPARSE_MAX: Final = 256
"""Brackets of a big message that are looked for one by one."""

RequestId: TypeAlias = int | str

_META_PREFIX = "io.modelcontextprotocol/"
_ORJSON_DEPTH = 254
_BOM = b"\xef\xbb\xbf"
_LONE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
_ANSWER = re.compile(rb'\{\s*"(?:jsonrpc|id|result|error)"\s*:')
_DIGITS = re.compile(r"[0-9]{1,15}")
_FIRST_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,')
_LAST_ID = re.compile(rb',\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


@value
class Response:
    """An answer. ``id`` is None where it came without one."""

    id: RequestId | None
    answer: Result | RemoteError


@dataclass(frozen=True, slots=True)
class Notification:
    """A one-way message from the peer."""

    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class PeerRequest:
    """A request from the peer, which this revision forbids; never answered."""

    id: RequestId
    method: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """Bytes that are no JSON-RPC message; ``reason`` is our own phrase, without remote text."""

    reason: str
    id: RequestId | None = None
    """The request it was meant to answer, where that can still be read, so that its caller need not wait."""
    seems: int | None = None
    """The request it seems to answer, where its id or its envelope is not of the right form."""


Message: TypeAlias = Response | Notification | PeerRequest | Malformed


def stamp(capabilities: JsonObject) -> JsonObject:
    """Return the protocol fields that every request of a connection has. MCP 2026-07-28 basic/index, ``_meta``."""
    return {
        f"{_META_PREFIX}protocolVersion": REVISION,
        f"{_META_PREFIX}clientInfo": CLIENT_INFO,
        f"{_META_PREFIX}clientCapabilities": capabilities,
    }


def encode_request(
    request_id: int,
    method: str,
    params: JsonObject,
    *,
    stamp: JsonObject,
    progress_token: int | None = None,
    trace: Mapping[str, str] | None = None,
) -> bytes:
    """Return one request as one line without its newline.

    ``trace`` holds W3C ``traceparent`` and ``tracestate``. MCP 2026-07-28 basic/index, ``_meta``.

    Raises:
        RequestNotSent: the parameters cannot be written as JSON.
    """
    meta = stamp
    if progress_token is not None:
        meta = {**meta, "progressToken": progress_token}
    if trace:
        meta = {**meta, **trace}
    return _written(
        {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": meta}}
    )


def encode_cancelled(request_id: int, reason: str) -> bytes:
    """Return ``notifications/cancelled`` for one of our requests, as one line without its newline.

    Only stdio sends it. MCP 2026-07-28 basic/patterns/cancellation.
    """
    params: JsonObject = {"requestId": request_id, "reason": reason}
    return _written({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def decode(data: bytes) -> Message:
    """Return the message that the bytes are. Raises nothing, whatever they are.

    While a big value grows the garbage collector rests: it would walk the value again and again, five times the
    work, and no part of it is garbage.
    """
    if len(data) < BIG_MESSAGE or not gc.isenabled():
        return _decoded(data)
    gc.disable()
    try:
        return _decoded(data)
    finally:
        gc.enable()


def answer_after_noise(line: bytes) -> tuple[bytes, Response] | None:
    """Return what a line begins with and the answer that it ends with: a banner may lack its own newline."""
    found = _ANSWER.search(line, 1)
    message = decode(line[found.start() :]) if found else None
    return (line[: found.start()], message) if found and isinstance(message, Response) else None


def _decoded(data: bytes) -> Message:
    brackets = _count(data, b"[") + _count(data, b"{")  # bounds the levels as well as the arrays and objects
    if brackets > BRACKETS_MAX:
        return Malformed(f"of more than {BRACKETS_MAX} arrays and objects", _id_hint(data))
    try:
        value = parsed_json(data)
    except orjson.JSONDecodeError:
        return Malformed("not JSON", _id_hint(data))
    if not isinstance(value, dict):
        one = value[0] if isinstance(value, list) and len(value) == 1 else None
        return Malformed("not a JSON object", seems=_seems(one) if isinstance(one, dict) else None)
    if value.get("jsonrpc") != "2.0":
        return Malformed("not JSON-RPC 2.0", seems=_seems(value))
    identifier = value.get("id")
    if identifier is not None and (isinstance(identifier, bool) or not isinstance(identifier, int | str)):
        return Malformed("an id that is neither text nor an integer", seems=_seems(value))
    if brackets > DEPTH_MAX and _is_too_deep(value):
        return Malformed(f"nested more than {DEPTH_MAX} levels deep", identifier)
    return _classified(value, identifier, len(data))


def meant_id(identifier: Json) -> int | None:
    """Return the integer that an id is, or is in another type: its digits, a double without a fraction."""
    match identifier:
        case bool():
            return None
        case int():
            return identifier
        case float() if identifier.is_integer():
            return int(identifier)
        case str() if _DIGITS.fullmatch(identifier):
            return int(identifier)
        case _:
            return None


def _seems(value: JsonObject) -> int | None:
    """Return the request that an object answers by its id, or None where it is no answer."""
    is_answer = value.get("result") is not None or value.get("error") is not None
    return meant_id(value.get("id")) if is_answer and value.get("method") is None else None


def _classified(value: JsonObject, identifier: RequestId | None, size: int) -> Message:
    """Return the message of a JSON-RPC 2.0 object."""
    method, result, error = value.get("method"), value.get("result"), value.get("error")
    if method is not None:
        return _asked(method, value, identifier)
    if result is not None and error is not None:
        return Malformed("both a result and an error", identifier)
    if error is not None:
        answer = _remote_error(error)
        return (
            Response(identifier, answer)
            if answer
            else Malformed("an error without an integer code", identifier)
        )
    if not isinstance(result, dict):
        return Malformed("neither a result object nor an error", identifier)
    return Response(identifier, Result(result, size))


def _asked(method: Json, value: JsonObject, identifier: RequestId | None) -> Message:
    """Return the notification or request of a message that has a method."""
    if not isinstance(method, str) or value.get("result") is not None or value.get("error") is not None:
        return Malformed("neither a request nor a response", identifier)
    params = value.get("params")
    if identifier is not None:
        return PeerRequest(identifier, method)
    if params is not None and not isinstance(params, dict):
        return Malformed("a notification whose params are not an object")
    return Notification(method, params or {})


def _remote_error(error: Json) -> RemoteError | None:
    """Return the error object, or None where it is no JSON-RPC error (an OAuth body, for one, is text)."""
    if not isinstance(error, dict):
        return None
    code, message = error.get("code"), error.get("message")
    if isinstance(code, float):
        code = plain_number(code)
    if isinstance(code, bool) or not isinstance(code, int):
        return None
    return RemoteError(code, message if isinstance(message, str) else "", error.get("data"))


def parsed_json(data: bytes) -> Json:
    """Return the JSON value that somebody else wrote, mended where mending is decided. SPEC §connection, Foreign JSON.

    Raises:
        orjson.JSONDecodeError: it is no JSON, or JSON we do not take.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        mended = _mended(data)
        if mended is None:
            raise
        return orjson.loads(mended)


def _mended(data: bytes) -> str | None:
    """Return the text with unpaired surrogates and foreign bytes replaced, or None where there are none."""
    if data.isascii() and b"\\u" not in data:
        return None
    body = data.removeprefix(_BOM)
    text = body.decode("utf-8", "replace")
    if "\\u" in text and "\0" not in text:  # no JSON text has a raw NUL: it stands for what escapes itself
        text = _LONE.sub(r"\\ufffd", text.replace("\\\\", "\0")).replace("\0", "\\\\")
    return None if text.encode() == data else text


def _count(data: bytes, bracket: bytes) -> int:
    """Return ``data.count(bracket)``, at a fiftieth of the price in a large message of few, such as one long text.

    ``count`` looks at one byte at a time, ``find`` at many.
    """
    if len(data) < BIG_MESSAGE:
        return data.count(bracket)
    found, at = 0, data.find(bracket)
    while at >= 0:
        found += 1
        if found > SPARSE_MAX:
            return data.count(bracket)
        at = data.find(bracket, at + 1)
    return found


def _is_too_deep(value: JsonObject) -> bool:
    """Return whether the value has more levels than we take; walks it, in C."""
    wrapped: Json = value
    for _ in range(_ORJSON_DEPTH - DEPTH_MAX):
        wrapped = [wrapped]
    try:
        orjson.dumps(wrapped)
    except orjson.JSONEncodeError:
        return True
    return False


def _id_hint(data: bytes) -> int | None:
    """Return the id where it stands first or last in the outermost object of what is no JSON we take."""
    found = _FIRST_ID.match(data[:256]) or _LAST_ID.search(data[-256:])
    return int(found[1]) if found else None


def _written(message: JsonObject) -> bytes:
    """Return the message as JSON without a raw newline.

    orjson refuses integers beyond 64 bits, unpaired surrogates and deep nesting; the standard library writes
    them unchanged (surrogates as escapes), because a caller's arguments are never altered.
    """
    try:
        return orjson.dumps(message)
    except orjson.JSONEncodeError:
        pass
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (ValueError, TypeError, RecursionError):
        raise RequestNotSent("its parameters cannot be written as JSON") from None
