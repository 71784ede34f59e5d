"""Signatures: one bounded, deterministic line that invents nothing. SPEC §addresses."""

import json
from collections.abc import Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.json_value import Json, JsonObject
from app.core.signatures import LENGTH_MAX, signature

pytestmark = pytest.mark.spec("addresses")

NODE: JsonObject = {"type": "object", "properties": {"kid": {"$ref": "#/$defs/N"}}}


def of(schema: Json, definitions: Mapping[str, Json] = MappingProxyType({})) -> str:
    """Return the type of one property."""
    whole = signature(
        {"type": "object", "properties": {"p": schema}, "required": ["p"], "$defs": dict(definitions)}
    )
    assert whole.startswith('{"p": ')
    assert whole.endswith("}")
    return whole[6:-1]


def test_the_example_of_the_contract() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "d", "default": "never shown"},
            "labels": {"type": "array", "items": {"type": "string"}},
            "state": {"type": "string", "enum": ["open", "closed"]},
        },
        "required": ["title"],
    }
    assert signature(schema) == '{"title": string, "labels"?: string[], "state"?: "open" | "closed"}'


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": False},
        {"type": "object", "properties": {}},
    ],
)
def test_a_tool_without_parameters_takes_an_empty_object(schema: JsonObject) -> None:
    assert signature(schema) == "{}"


@pytest.mark.parametrize(
    "schema, text",
    [
        ({"type": "string"}, "string"),
        ({"type": "number"}, "number"),
        ({"type": "integer"}, "integer"),
        ({"type": "boolean"}, "boolean"),
        ({"type": "null"}, "null"),
        ({"type": ["integer", "null"]}, "integer | null"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": {"type": ["string", "number"]}}, "(string | number)[]"),
        ({"type": "array", "items": {"type": "array", "items": {"const": 5}}}, "5[][]"),
        ({"items": {"type": "null"}}, "null[]"),
        ({"type": "array", "prefixItems": [{"type": "string"}, True]}, "[string, any]"),
        ({"prefixItems": [{"const": "a"}], "items": {"type": "null"}}, '["a", ...null[]]'),
        ({"items": [{"const": 1}], "additionalItems": {"type": "string"}}, "[1, ...string[]]"),
        ({"prefixItems": [{"const": 1}], "items": False}, "[1]"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"oneOf": [{"type": "string"}, {"type": "string"}]}, "string"),
        ({"anyOf": [{"type": "string"}, {}]}, "any"),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "string"),
        (
            {"allOf": [{"required": ["a"]}, {"anyOf": [{"type": "object"}, {"type": "null"}]}]},
            '{"a": any} & ({} | null)',
        ),
        (
            {"type": "array", "items": {"allOf": [{"required": ["a"]}, {"required": ["b"]}]}},
            '({"a": any} & {"b": any})[]',
        ),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "{[string]: number}"),
        (
            {"properties": {"a": {}}, "patternProperties": {"^x": {"type": "null"}}},
            '{"a"?: any, [string]: null}',
        ),
        ({"type": "object", "required": ["x"], "additionalProperties": True}, '{"x": any}'),
        ({"const": None}, "null"),
        ({"const": {"a": [1, 1.5, True]}}, '{"a":[1,1.5,true]}'),
        ({"enum": ["a", 1, None, False]}, '"a" | 1 | null | false'),
        ({"enum": []}, "never"),
        ({"enum": list(range(20))}, " | ".join([*map(str, range(16)), "…"])),
        ({"const": "x" * 500}, "…"),
        (True, "any"),
        (False, "never"),
        ({}, "any"),
        ({"type": "objekt"}, "any"),
        ({"type": 5}, "any"),
        ({"not": {"type": "string"}}, "any"),
        ({"if": {"type": "string"}, "then": {"minLength": 1}}, "any"),
        ({"$ref": "https://x.example/y"}, "any"),
        ({"$ref": "#/$defs/none"}, "any"),
    ],
)
def test_each_form_has_its_text(schema: Json, text: str) -> None:
    assert of(schema) == text


def test_references_are_followed_and_circles_are_left_out() -> None:
    assert of({"$ref": "#/$defs/N"}, {"N": NODE}) == '{"kid"?: …}'
    assert of({"$ref": "#n"}, {"N": {"$anchor": "n", "type": "null"}}) == "null"
    assert of({"$ref": "#"}) == "…"
    circle: JsonObject = {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}
    assert of({"$ref": "#/$defs/a"}, circle) == "…"
    rows: JsonObject = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"sub": {"type": "array", "items": {"$ref": "#/properties/p/items"}}},
        },
    }
    assert of(rows) == '{"sub"?: {"sub"?: …[]}[]}[]'


def test_the_same_reference_twice_is_no_circle() -> None:
    both: JsonObject = {"properties": {"a": {"$ref": "#/$defs/s"}, "b": {"$ref": "#/$defs/s"}}}
    assert of(both, {"s": {"type": "string"}}) == '{"a"?: string, "b"?: string}'


@pytest.mark.parametrize(
    "name, shown",
    [
        ('a"b', r'"a\"b"'),
        ("a\nb", r'"a\nb"'),
        ("\u202e", r'"\u202e"'),
        ("\u2028", r'"\u2028"'),
        ("\x85\x7f", r'"\u0085\u007f"'),
        ("\U000e0001", r'"\udb40\udc01"'),
        ("日本 語", '"日本 語"'),
        ("", '""'),
        ("}: string", '"}: string"'),
    ],
)
def test_hostile_names_are_json_strings(name: str, shown: str) -> None:
    assert signature({"type": "object", "properties": {name: {}}}) == f"{{{shown}?: any}}"
    assert json.loads(shown) == name


def test_large_schemas_end_in_an_ellipsis() -> None:
    wide = signature({"type": "object", "properties": {f"p{index}": {} for index in range(1000)}})
    assert wide.startswith('{"p0"?: any, ')
    assert wide.endswith('"p63"?: any, …}')
    long = signature({"type": "object", "properties": {"n" * 5000: {}, "b": {}}})
    assert long == "{…}"
    deep: JsonObject = {"type": "string"}
    for _ in range(40):
        deep = {"type": "object", "properties": {"a": deep}, "required": ["a"]}
    assert signature(deep) == '{"a": ' * 12 + "{" + '"a": …' + "}" * 13


keywords = st.sampled_from(
    [
        *("$anchor", "$defs", "$ref", "additionalItems", "additionalProperties", "allOf", "anyOf", "const"),
        *("definitions", "enum", "if", "items", "not", "oneOf", "patternProperties", "prefixItems"),
        *("properties", "required", "type"),
    ]
)
references = st.sampled_from(["#", "#/properties/a", "#/$defs/a", "#/anyOf/0", "#/items", "#x"])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | references,
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(keywords | st.sampled_from("ab"), below, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), below, max_size=4)
    ),
    max_leaves=40,
)


@given(st.dictionaries(keywords, json_values, max_size=6))
def test_any_object_has_one_bounded_line(schema: JsonObject) -> None:
    line = signature(schema)
    assert line == signature(json.loads(json.dumps(schema)))
    assert line.isprintable()
    assert 0 < len(line) <= LENGTH_MAX


def test_a_schema_made_to_explode_stays_bounded() -> None:
    definitions: JsonObject = {
        f"d{level}": {
            "properties": {f"property-{index}" * 10: {"$ref": f"#/$defs/d{level + 1}"} for index in range(30)}
        }
        for level in range(10)
    }
    assert len(signature({"type": "object", "$ref": "#/$defs/d0", "$defs": definitions})) <= LENGTH_MAX
    alternatives: Json = [{"enum": [f"{index}" * 110 for index in range(16)]} for _ in range(16)]
    assert len(signature({"type": "object", "properties": {"a": {"anyOf": alternatives}}})) <= LENGTH_MAX
