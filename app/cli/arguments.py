"""Reads a tool's arguments from the words of ``plurnk-mcpd call``. SPEC §cli.

``key=value`` gives text or, where the tool's schema wants no text, its JSON. ``key:=JSON`` is always
JSON. One word that is a JSON object, or ``-`` for standard input, gives them all. The daemon validates.
"""

from collections.abc import Callable, Mapping, Sequence

import orjson

from app.cli.failures import UsageFault
from app.core.json_value import Json, JsonObject

EXAMPLE = (
    """Give KEY=VALUE words, as in 'time=12:00 count=3', or one JSON object, as in '{"time": "12:00"}'."""
)


def parse(
    words: Sequence[str], *, read_input: Callable[[], bytes], schema: Callable[[], Mapping[str, Json]]
) -> JsonObject:
    """Return the arguments object; ``schema`` is asked for the tool's schema only where a word needs it.

    Raises:
        UsageFault: a word is neither ``key=value`` nor JSON.
    """
    if len(words) == 1 and words[0] == "-":
        return _object(read_input(), "standard input")
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _object(words[0].encode(errors="surrogateescape"), "the argument")
    pairs = [_pair(word) for word in words]
    properties = _properties(schema()) if any(not is_json for _, _, is_json in pairs) else {}
    return {
        key: _json(key, text) if is_json else _typed(text, properties.get(key))
        for key, text, is_json in pairs
    }


def _object(text: bytes, where: str) -> JsonObject:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageFault(
            f"{where} is not JSON: line {error.lineno}, column {error.colno}.", EXAMPLE
        ) from error
    if not isinstance(value, dict):
        raise UsageFault(f"{where} is no JSON object.", EXAMPLE)
    return value


def _pair(word: str) -> tuple[str, str, bool]:
    key, equals, text = word.partition("=")
    is_json = key.endswith(":")
    key = key.removesuffix(":")
    if not equals or not key:
        raise UsageFault(f"'{word}' is no argument.", EXAMPLE)
    return key, text, is_json


def _json(key: str, text: str) -> Json:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageFault(f"The value of '{key}:=' is not JSON.", f"Write {key}=TEXT for text.") from error


def _properties(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _typed(text: str, schema: Json) -> Json:
    """Return the text itself where the schema takes text, else the JSON it is, else the text."""
    if _takes_text(schema):
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _takes_text(schema: Json) -> bool:
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    if kind is None and isinstance(choices := schema.get("enum"), list):
        return all(isinstance(choice, str) for choice in choices)
    return kind == "string" or (isinstance(kind, list) and "string" in kind)
