"""``x-mcp-header``: the arguments a call mirrors into ``Mcp-Param-*``, and their encoding. SPEC §connection.

The rules of MCP 2026-07-28 server/tools (x-mcp-header) and basic/transports/streamable-http (Custom Headers
from Tool Parameters, Value Encoding). Arguments are read, never changed; the other headers are the
transport's.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import orjson

from app.core.json_value import Json, JsonObject
from app.core.schema_keywords import subschemas

ANNOTATION: Final = "x-mcp-header"
MARK: Final = ANNOTATION.encode()
"""Stands in the text of every schema, and of every tool, that has an annotation."""
HEADER_PREFIX: Final = "Mcp-Param-"
SAFE_INTEGER_MAX: Final = 2**53 - 1

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
"""A tab inside is allowed and encoded nevertheless: not every intermediary keeps it."""
_MIRRORED_TYPES = frozenset({"string", "integer", "boolean"})
_PLANS_MAX = 1024


@dataclass(frozen=True, slots=True)
class _Mirrored:
    """One annotated parameter."""

    header: str
    path: tuple[str, ...]


_Plan = tuple[_Mirrored, ...]


class AnnotationInvalid(Exception):
    """An annotation breaks the rules, so the tool must not be offered over HTTP; says which and why."""


def fault(input_schema: bytes) -> str | None:
    """Return what is wrong with the annotations of an input schema, or None where every one is good."""
    if MARK not in input_schema:
        return None
    try:
        _plan(input_schema)
    except AnnotationInvalid as invalid:
        return str(invalid)
    return None


def headers(input_schema: bytes, arguments: JsonObject) -> dict[str, str]:
    """Return the ``Mcp-Param-*`` headers of a call, values encoded.

    A value that is absent or null has none. The schema is one that ``fault`` found nothing wrong with.

    Raises:
        AnnotationInvalid: its annotations break the rules.
    """
    if MARK not in input_schema:
        return {}
    mirrored: dict[str, str] = {}
    for each in _plan(input_schema):
        text = _text(_value_at(each.path, arguments))
        if text is not None:
            mirrored[each.header] = encode_value(text)
    return mirrored


def present_arguments(input_schema: bytes, arguments: JsonObject) -> JsonObject:
    """Return the arguments as validation sees them: without the annotated parameters that are null.

    The protocol says of an annotated parameter that null means it is not there (Server Behavior for Custom
    Headers), though its schema cannot say ``"type": ["boolean", "null"]``. What is sent are the arguments as
    they came.
    """
    if MARK not in input_schema:
        return arguments
    for each in _plan(input_schema):
        if _value_at(each.path, arguments) is None:
            arguments = _without(each.path, arguments)
    return arguments


def encode_value(text: str) -> str:
    """Return the text as a header value: itself where it is plain, else base64 of its UTF-8 in the sentinel.

    Also for ``Mcp-Name``. A lone surrogate, which UTF-8 cannot write, is sent as U+FFFD.
    """
    if not text or (_PLAIN.fullmatch(text) and not (text.startswith("=?base64?") and text.endswith("?="))):
        return text
    utf8 = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
    return f"=?base64?{base64.b64encode(utf8).decode('ascii')}?="


def _value_at(path: tuple[str, ...], arguments: JsonObject) -> Json:
    value: Json = arguments
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _without(path: tuple[str, ...], arguments: JsonObject) -> JsonObject:
    """Return the arguments without the member at the path; a copy where it was there."""
    name, rest = path[0], path[1:]
    if name not in arguments:
        return arguments
    if not rest:
        return {key: value for key, value in arguments.items() if key != name}
    below = arguments[name]
    return {**arguments, name: _without(rest, below)} if isinstance(below, dict) else arguments


def _text(value: Json) -> str | None:
    """Return the value as text; None for what has no header: null, and what is no primitive."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float() if value.is_integer() and abs(value) <= SAFE_INTEGER_MAX:
            return str(int(value))
        case float():
            return orjson.dumps(value).decode()
        case str():
            return value
        case _:
            return None


@lru_cache(maxsize=_PLANS_MAX)
def _plan(input_schema: bytes) -> _Plan:
    found = tuple(_annotations(orjson.loads(input_schema)))
    seen: set[str] = set()
    for each in found:
        name = each.header.lower()
        if name in seen:
            raise AnnotationInvalid(f"two parameters have the header name '{each.header}'")
        seen.add(name)
    return found


def _annotations(root: Json) -> Iterator[_Mirrored]:
    """Yield every annotation of the schema.

    Raises:
        AnnotationInvalid: one stands where it must not, or is not a good one.
    """
    waiting: list[tuple[tuple[str, ...] | None, Json]] = [((), root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        if ANNOTATION in schema:
            yield _mirrored(schema, path)
        for step, subschema in subschemas(schema):
            is_reachable = path is not None and step[0] == "properties"
            waiting.append(((*path, str(step[1])) if is_reachable and path is not None else None, subschema))


def _mirrored(schema: JsonObject, path: tuple[str, ...] | None) -> _Mirrored:
    name = schema[ANNOTATION]
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise AnnotationInvalid("a header name is not a token of RFC 9110")
    if not path:
        raise AnnotationInvalid(f"the header '{name[:64]}' annotates what only its property path can reach")
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _MIRRORED_TYPES:
        raise AnnotationInvalid(f"the header '{name[:64]}' annotates what is no string, integer or boolean")
    return _Mirrored(HEADER_PREFIX + name, path)
