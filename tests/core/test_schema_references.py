"""Every place that a reference of a schema may lead to is known. SPEC §calls."""

import pytest

from app.core.json_value import JsonObject
from app.core.schema_references import References

pytestmark = pytest.mark.spec("calls")

LEAF: JsonObject = {"title": "leaf"}


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"$ref": "#/$defs/x"}, "$defs": {"x": LEAF}},
        {"not": {"$ref": "#here"}, "$defs": {"x": {"$anchor": "here", **LEAF}}},
        {"$id": "https://x.example/s", "not": {"$ref": "https://x.example/s#/$defs/x"}, "$defs": {"x": LEAF}},
        {"$id": "https://x.example/s", "not": {"$ref": "s#/$defs/x"}, "$defs": {"x": LEAF}},
        {"not": {"$ref": "other"}, "$defs": {"x": {"$id": "other", **LEAF}}},
        {"not": {"$ref": "other#/$defs/y"}, "$defs": {"x": {"$id": "other", "$defs": {"y": LEAF}}}},
        {"not": {"$ref": "#/definitions/x"}, "definitions": {"x": {"$id": "#x", **LEAF}}},
        {"not": {"$dynamicRef": "#node"}, "$defs": {"x": {"$dynamicAnchor": "node", **LEAF}}},
        {"not": {"$dynamicRef": "#/$defs/x"}, "$defs": {"x": LEAF}},
    ],
)
def test_a_reference_within_the_document_is_followed(schema: JsonObject) -> None:
    [found] = References(schema).of(_at(schema, "not"))
    assert isinstance(found, dict)
    assert found["title"] == "leaf"


def test_a_dynamic_reference_may_lead_to_every_anchor_of_its_name() -> None:
    nodes: JsonObject = {f"x{index}": {"$dynamicAnchor": "node", "title": index} for index in range(3)}
    schema: JsonObject = {"not": {"$dynamicRef": "#node"}, "$defs": nodes}
    references = References(schema)
    assert sorted(map(str, references.of(_at(schema, "not")))) == sorted(map(str, nodes.values()))
    assert references.is_dynamic


def test_a_recursive_reference_leads_to_its_resource_and_to_the_whole() -> None:
    schema: JsonObject = {"$recursiveAnchor": True, "not": {"$recursiveRef": "#"}}
    references = References(schema)
    assert next(iter(references.of(_at(schema, "not")))) is schema
    assert references.is_dynamic


@pytest.mark.parametrize(
    "reference", ["#/nowhere", "#nobody", "https://json-schema.org/draft/2020-12/schema", "http://[", "x"]
)
def test_what_leads_out_of_the_document_is_none(reference: str) -> None:
    schema: JsonObject = {"not": {"$ref": reference}}
    references = References(schema)
    assert [*references.of(_at(schema, "not"))] == [None]
    assert not references.is_dynamic


def _at(schema: JsonObject, name: str) -> JsonObject:
    part = schema[name]
    assert isinstance(part, dict)
    return part
