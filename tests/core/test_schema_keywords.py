"""The places of schemas within a schema, and where local references lead. SPEC §calls."""

from typing import Any

import pytest

from app.core.json_value import Json, JsonObject
from app.core.schema_keywords import Path, is_supported_dialect, resolve, subschemas

pytestmark = pytest.mark.spec("calls")


def test_schemas_stand_below_keywords_and_not_in_data() -> None:
    schema: JsonObject = {
        "properties": {"properties": {"type": "null"}, "b": True},
        "items": {"const": 1},
        "prefixItems": [{}, False],
        "anyOf": [{"title": "x"}],
        "dependencies": {"a": ["b"], "c": {"type": "null"}},
        "const": {"properties": {"a": {}}},
        "default": {"items": {}},
        "enum": [{"not": {}}],
        "x-own": {"properties": {}},
        "not": 5,
        "patternProperties": [],
    }
    assert list(subschemas(schema)) == [
        (("properties", "properties"), {"type": "null"}),
        (("properties", "b"), True),
        (("items",), {"const": 1}),
        (("prefixItems", 0), {}),
        (("prefixItems", 1), False),
        (("anyOf", 0), {"title": "x"}),
        (("dependencies", "c"), {"type": "null"}),
    ]
    assert list(subschemas({"items": [{}, {"type": "null"}]})) == [
        (("items", 0), {}),
        (("items", 1), {"type": "null"}),
    ]


ROOT: JsonObject = {
    "$defs": {
        "a b": {"title": "blank"},
        "c/d~e": {"title": "escaped"},
        "~1": {"title": "looks escaped"},
        "f": {"$anchor": "anchored", "title": "f"},
        "g": {"$dynamicAnchor": "dynamic"},
        "h": {"$id": "#old"},
    },
    "prefixItems": [{"title": "0"}, {"title": "1"}],
}


@pytest.mark.parametrize(
    "reference, found",
    [
        ("#", ()),
        ("#/$defs/a%20b", ("$defs", "a b")),
        ("#/$defs/a b", ("$defs", "a b")),
        ("#/$defs/c~1d~0e", ("$defs", "c/d~e")),
        ("#/$defs/~01", ("$defs", "~1")),
        ("#/prefixItems/1", ("prefixItems", 1)),
        ("#anchored", ("$defs", "f")),
        ("#dynamic", ("$defs", "g")),
        ("#old", ("$defs", "h")),
        ("#/prefixItems/2", None),
        ("#/prefixItems/-1", None),
        ("#/prefixItems/²", None),
        ("#/$defs/f/title/x", None),
        ("#/", None),
        ("#none", None),
        ("other#/$defs/f", None),
        ("https://x.example/y", None),
        ("", None),
        (5, None),
        (None, None),
    ],
)
def test_local_references_are_resolved(reference: Json, found: Path | None) -> None:
    resolved = resolve(ROOT, reference)
    assert (resolved[0] if resolved else None) == found
    if resolved and found:
        value: Any = ROOT
        for step in found:
            value = value[step]
        assert resolved[1] is value


@pytest.mark.parametrize(
    "dialect, is_supported",
    [
        ("https://json-schema.org/draft/2020-12/schema", True),
        ("http://json-schema.org/draft/2020-12/schema#", True),
        ("http://json-schema.org/draft-04/schema", True),
        ("https://json-schema.org/draft/2020-12/schema##", False),
        ("HTTPS://json-schema.org/draft/2020-12/schema", False),
        (None, True),
        (5, False),
    ],
)
def test_dialects(dialect: Json, is_supported: bool) -> None:
    assert is_supported_dialect({"$schema": dialect}) is is_supported
    assert is_supported_dialect({})
