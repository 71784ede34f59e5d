"""Validation against JSON Schemas of strangers. SPEC §calls, §limits."""

import copy
import socketserver
import threading
from collections.abc import Iterator

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from app.core.json_value import Json, JsonObject
from app.core.schemas import SchemaInvalid, require_usable, validate

pytestmark = pytest.mark.spec("calls")

ISSUE: JsonObject = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "labels": {"type": "array", "items": {"type": "string"}},
        "state": {"enum": ["open", "closed"]},
    },
    "required": ["title"],
    "additionalProperties": False,
}


def reason_of(schema: Json, **limits: int) -> str:
    with pytest.raises(SchemaInvalid) as refused:
        require_usable(schema, **limits)
    return refused.value.reason


def test_a_value_that_fits_has_no_errors() -> None:
    assert validate(ISSUE, {"title": "t", "labels": [], "state": "open"}) == []
    assert validate(orjson.dumps(ISSUE), {"title": "t"}) == []


def test_every_fault_is_told_by_pointer_without_the_value() -> None:
    secret = "hunter2-hunter2"
    errors = validate(ISSUE, {"titel": secret, "labels": ["a", 5], "state": secret})
    assert errors == [
        ("/title", "is required"),
        ("/titel", "is not a known property"),
        ("/labels/1", "must be of type string"),
        ("/state", 'must be one of "open","closed"'),
    ]
    assert secret not in str(errors)


def test_arguments_are_never_changed() -> None:
    schema: JsonObject = {"type": "object", "properties": {"n": {"type": "integer", "default": 5}}}
    arguments: JsonObject = {"n": 42.0, "extra": None}
    before = copy.deepcopy(arguments)
    assert validate(schema, arguments) == []
    assert orjson.dumps(arguments) == orjson.dumps(before)


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", [], {}])
def test_any_json_value_can_be_judged(value: Json) -> None:
    assert validate({}, value) == []
    assert validate({"type": "object", "maxProperties": 0}, value) == (
        [] if value == {} else [("", "must be of type object")]
    )


@pytest.mark.parametrize(
    "dialect, exclusive",
    [
        ("https://json-schema.org/draft/2020-12/schema", 5),
        ("https://json-schema.org/draft/2019-09/schema#", 5),
        ("http://json-schema.org/draft-07/schema#", 5),
        ("https://json-schema.org/draft-07/schema", 5),
        ("http://json-schema.org/draft-06/schema#", 5),
        ("http://json-schema.org/draft-04/schema#", True),
    ],
)
def test_each_supported_dialect_judges_by_its_own_words(dialect: str, exclusive: Json) -> None:
    schema: JsonObject = {"$schema": dialect, "minimum": 5, "exclusiveMinimum": exclusive}
    assert validate(schema, 6) == []
    assert len(validate(schema, 5)) == 1


@pytest.mark.parametrize(
    "dialect", ["http://json-schema.org/draft-03/schema#", "urn:own", "", "2020-12", 5, {}]
)
def test_another_dialect_is_refused(dialect: Json) -> None:
    assert reason_of({"$schema": dialect, "type": "object"}) == "dialect-unsupported"


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        [],
        "x",
        {"type": "objekt"},
        {"properties": []},
        {"required": "a"},
        {"pattern": "("},
        {"properties": {"a": {"patternProperties": {"[": {}}}}},
        {"$defs": {"unused": {"minimum": "1"}}},
        {"$ref": 5},
        {"enum": {}},
        {"title": "\ud800"},
    ],
)
def test_what_is_no_schema_of_its_dialect_is_refused(schema: Json) -> None:
    assert reason_of(schema) == "schema-invalid"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/none"},
        {"$ref": "#none"},
        {"properties": {"a": {"$ref": "other.json"}}},
        {"$defs": {"unused": {"$ref": "https://x.example/y"}}},
        {"$ref": "file:///etc/hostname"},
        {"$id": "https://x.example/a", "$ref": "b"},
        {"$dynamicRef": "https://x.example/y#z"},
    ],
)
def test_a_reference_that_leads_out_is_refused_not_taken_as_permissive(schema: JsonObject) -> None:
    assert reason_of(schema) == "reference-unresolved"


class Canary(socketserver.BaseRequestHandler):
    """Counts connections."""

    @override
    def handle(self) -> None:
        assert isinstance(self.server, CanaryServer)
        self.server.visits += 1


class CanaryServer(socketserver.TCPServer):
    """Listens on a loopback port."""

    visits = 0


@pytest.fixture
def canary() -> Iterator[CanaryServer]:
    with CanaryServer(("127.0.0.1", 0), Canary) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_no_reference_is_ever_fetched(canary: CanaryServer) -> None:
    url = f"http://127.0.0.1:{canary.server_address[1]}/schema.json"
    for keyword in ("$ref", "$dynamicRef"):
        schema: JsonObject = {
            "type": "object",
            "properties": {"id": {"type": "string"}, "profile": {keyword: url}},
        }
        assert reason_of(schema) == "reference-unresolved"
        with pytest.raises(SchemaInvalid):
            validate(schema, {"profile": {}})
    assert reason_of({"$schema": url}) == "dialect-unsupported"
    embedded: JsonObject = {
        "$id": url,
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"type": "null"}},
    }
    assert validate(embedded, {"a": 5}) == [("/a", "must be of type null")]
    assert canary.visits == 0


def test_references_within_the_document_are_followed() -> None:
    by_pointer: JsonObject = {
        "type": "object",
        "properties": {
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"sub": {"type": "array", "items": {"$ref": "#/properties/rows/items"}}},
                },
            }
        },
    }
    assert validate(by_pointer, {"rows": [{"sub": [{"sub": []}]}]}) == []
    assert validate(by_pointer, {"rows": [{"sub": [{"sub": [5]}]}]}) == [
        ("/rows/0/sub/0/sub/0", "must be of type object")
    ]
    by_anchor: JsonObject = {"$ref": "#n", "$defs": {"x": {"$anchor": "n", "type": "null"}}}
    assert validate(by_anchor, 5) == [("", "must be of type null")]
    to_meta_schema: JsonObject = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert validate(to_meta_schema, {"type": "object"}) == []
    assert len(validate(to_meta_schema, {"type": 5})) == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"$ref": "#"}, {"type": "object"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
        {"not": {"not": {"$ref": "#"}}},
    ],
)
def test_a_schema_that_refers_to_itself_in_place_ends(schema: JsonObject) -> None:
    assert isinstance(validate(schema, {}), list)


def test_formats_are_annotations() -> None:
    for dialect in (
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    ):
        assert validate({"$schema": dialect, "format": "email"}, "nobody") == []


@pytest.mark.spec("limits")
def test_depth_and_size_of_a_schema_are_bounded() -> None:
    schema: JsonObject = {}
    for _ in range(31):
        schema = {"properties": {"a": schema}}
    require_usable(schema)
    assert reason_of({"allOf": [{"properties": {"a": schema}}]}) == "schema-too-deep"
    assert reason_of(schema, max_depth=62) == "schema-too-deep"
    values: list[Json] = ["x"]
    require_usable({"enum": values * 9_998})
    assert reason_of({"enum": values * 9_999}) == "schema-too-large"
    assert reason_of({"a": 1, "b": 2}, max_nodes=2) == "schema-too-large"


@pytest.mark.spec("limits")
def test_a_pattern_that_would_backtrack_without_end_is_bounded() -> None:
    text = "a" * 60_000 + "!"
    for pattern in ("^(a+)+$", "^(?=a)((a|a)+)+(?<!b)$", r"^(a+)+\1$"):
        assert validate({"pattern": pattern}, text) != []
    assert validate({"pattern": "^(?=.*[A-Z])(?=.*[0-9]).{8,}$"}, "Passw0rd-Passw0rd") == []
    assert validate({"pattern": "^(?!x)"}, "y") == []


@pytest.mark.spec("limits")
def test_a_value_may_be_deep_but_not_without_end() -> None:
    value: Json = []
    for _ in range(199):
        value = [value]
    assert validate({"type": "array"}, value) == []
    for _ in range(100):
        value = [value]
    assert validate({"type": "array"}, value) == [
        ("", "must be Unicode JSON text that nests at most 200 levels")
    ]
    assert validate({"type": "string"}, "\ud800") != []


def tree(depth: int, leaf: Json) -> Json:
    return leaf if depth == 0 else {"op": "o9", "l": tree(depth - 1, leaf), "r": tree(depth - 1, leaf)}


@pytest.mark.spec("limits")
def test_recursive_alternatives_neither_explode_nor_hide_their_errors() -> None:
    node: JsonObject = {"$ref": "#/$defs/node"}
    operations: list[Json] = [
        {
            "type": "object",
            "properties": {"op": {"const": f"o{index}"}, "l": node, "r": node},
            "required": ["op", "l", "r"],
        }
        for index in range(10)
    ]
    schema: JsonObject = {
        "$ref": "#/$defs/node",
        "$defs": {"node": {"oneOf": [*operations, {"type": "integer"}]}},
    }
    assert validate(schema, tree(10, 1)) == []
    errors = validate(schema, tree(10, "x"))
    assert len(errors) == 20
    assert errors[0] == ("/l" * 10, "fits none of 11 alternatives")


simple_schemas = st.recursive(
    st.sampled_from(
        [
            {},
            {"type": "string"},
            {"type": ["integer", "null"]},
            {"const": 1},
            {"enum": ["a", None]},
            {"minimum": 3},
            {"minLength": 2},
            {"pattern": "^a"},
            {"required": ["a"]},
            {"uniqueItems": True},
            {"$ref": "#/$defs/loop"},
            True,
            False,
        ]
    ),
    lambda below: (
        st.fixed_dictionaries({"properties": st.dictionaries(st.sampled_from("abc"), below, max_size=2)})
        | st.fixed_dictionaries({"items": below})
        | st.fixed_dictionaries({"additionalProperties": below})
        | st.fixed_dictionaries({"prefixItems": st.lists(below, min_size=1, max_size=2), "items": below})
        | st.fixed_dictionaries({"anyOf": st.lists(below, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"oneOf": st.lists(below, min_size=1, max_size=3)})
        | st.fixed_dictionaries({"allOf": st.lists(below, min_size=1, max_size=2)})
        | st.fixed_dictionaries({"if": below, "then": below, "else": below})
        | st.fixed_dictionaries({"not": below})
        | st.fixed_dictionaries({"propertyNames": below})
        | st.fixed_dictionaries({"contains": below})
        | st.fixed_dictionaries({"patternProperties": st.fixed_dictionaries({"^a": below})})
    ),
    max_leaves=6,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 5) | st.sampled_from(["", "a", "ab", "b"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abc"), below, max_size=3),
    max_leaves=6,
)


@given(root=simple_schemas, value=values)
def test_the_verdict_is_that_of_the_reference_implementation(root: Json, value: Json) -> None:
    loop: JsonObject = {"type": "array", "items": {"$ref": "#/$defs/loop"}}
    schema: JsonObject = {"allOf": [root], "$defs": {"loop": loop}}
    errors = validate(schema, value)
    assert (errors == []) == jsonschema.Draft202012Validator(schema).is_valid(value)
    assert len(errors) <= 20


KEYWORDS = """
$anchor $defs $dynamicAnchor $dynamicRef $id $ref $schema additionalProperties allOf anyOf const contains
dependentRequired dependentSchemas enum exclusiveMinimum if items maxLength minContains minItems multipleOf not oneOf
pattern patternProperties prefixItems properties propertyNames required then type unevaluatedItems
unevaluatedProperties uniqueItems
"""
WORDS = """
# #/$defs/a #/properties/a #a a object string null ^(?=a) ( x{9999}
http://json-schema.org/draft-04/schema# https://json-schema.org/draft/2019-09/schema
"""
keywords, words = st.sampled_from(KEYWORDS.split()), st.sampled_from(WORDS.split())
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | words
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(keywords | st.just("a"), below, max_size=4),
    max_leaves=25,
)


@given(schema=st.dictionaries(keywords, anything, max_size=6), value=values)
def test_any_object_is_a_usable_schema_or_refused_with_a_known_reason(
    schema: JsonObject, value: Json
) -> None:
    try:
        require_usable(schema)
    except SchemaInvalid as refused:
        reason = refused.reason
    else:
        assert isinstance(validate(schema, value), list)
        return
    assert reason in {"schema-invalid", "reference-unresolved", "dialect-unsupported", "schema-too-costly"}
