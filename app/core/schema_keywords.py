"""Where schemas stand in a JSON Schema of any supported dialect, and where references lead. SPEC §calls.

Structure only: nothing here judges or compiles a schema.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import unquote

from app.core.json_value import Json, JsonObject

Path: TypeAlias = tuple[str | int, ...]
"""The steps from a schema to one below it, keywords among them."""

_SINGLE: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LIST: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_MAP: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
IN_PLACE: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies"})
"""Keywords that apply other schemas to the same value; ``then`` and ``else`` do beside ``if``."""
REFERENCES: Final = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
"""Keywords that apply a schema of elsewhere to the same value."""
_SUPPORTED: Final = (
    "json-schema.org/draft/2020-12/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-04/schema",
)
DIALECTS: Final[Mapping[str, str]] = MappingProxyType(
    {f"{scheme}://{dialect}": dialect for dialect in _SUPPORTED for scheme in ("http", "https")}
)
"""Every ``$schema`` that is supported, without its empty fragment. Without one, the first is meant."""


def is_supported_dialect(schema: JsonObject) -> bool:
    """Whether the schema's dialect is one we can validate by."""
    dialect = schema.get("$schema")
    return dialect is None or (isinstance(dialect, str) and dialect.removesuffix("#") in DIALECTS)


def subschemas(schema: JsonObject) -> Iterator[tuple[Path, Json]]:
    """Yield every schema directly below this one, with its path; booleans too, malformed places not."""
    for keyword, value in schema.items():
        if isinstance(value, dict) and keyword in _MAP:
            for name, each in value.items():
                if isinstance(each, dict | bool):
                    yield (keyword, name), each
        elif isinstance(value, list) and keyword in _LIST:
            for index, each in enumerate(value):
                yield (keyword, index), each
        elif isinstance(value, dict | bool) and keyword in _SINGLE:
            yield (keyword,), value


def resolve(root: Json, reference: Json) -> tuple[Path, Json] | None:
    """Return where a reference within the document leads, and the path to it; None where that is not known.

    Knows JSON Pointer fragments and anchors; not references through ``$id``, which only the validator
    follows.
    """
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    fragment = unquote(reference[1:])
    if fragment == "" or fragment.startswith("/"):
        return _at_pointer(root, fragment)
    return _at_anchor(root, fragment)


def _at_pointer(root: Json, pointer: str) -> tuple[Path, Json] | None:
    path: list[str | int] = []
    value = root
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            path.append(name)
            value = value[name]
        elif isinstance(value, list) and name.isascii() and name.isdigit() and int(name) < len(value):
            path.append(int(name))
            value = value[int(name)]
        else:
            return None
    return tuple(path), value


def _at_anchor(root: Json, anchor: str) -> tuple[Path, Json] | None:
    waiting: list[tuple[Path, Json]] = [((), root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        if (
            anchor in (schema.get("$anchor"), schema.get("$dynamicAnchor"))
            or schema.get("$id") == f"#{anchor}"
        ):
            return path, schema
        waiting.extend(((*path, *below), each) for below, each in subschemas(schema))
    return None
