"""Signatures: one bounded, deterministic line that invents nothing. SPEC §addresses."""

import json
import re
from collections.abc import Mapping
from random import Random
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.json_value import Json, JsonObject
from app.core.printable_json import printable_json
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
            '{"a": any} & ({[string]: any} | null)',
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
        ({"type": "object", "required": ["x"], "additionalProperties": True}, '{"x": any, [string]: any}'),
        ({"const": None}, "null"),
        ({"const": {"a": [1, 1.5, True]}}, '{"a":[1,1.5,true]}'),
        ({"enum": ["a", 1, None, False]}, '"a" | 1 | null | false'),
        ({"enum": []}, "never"),
        ({"enum": list(range(100))}, " | ".join([*map(str, range(64)), "…"])),
        ({"enum": ["x" * 98] * 20}, f'"{"x" * 98}" | …'),
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


@pytest.mark.parametrize(
    "schema, text",
    [
        pytest.param(
            {"type": "object", "additionalProperties": {}, "propertyNames": {"type": "string"}},
            "{[string]: any}",
            id="zod record, pydantic dict",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {}},
            '{"a"?: string, [string]: any}',
            id="zod looseObject",
        ),
        pytest.param({"type": "object"}, "{[string]: any}", id="an object of any kind"),
        pytest.param({"type": "object", "minProperties": 1}, "{[string]: any}", id="the same, not empty"),
        pytest.param({"type": "object", "additionalProperties": False}, "{}", id="zod strictObject"),
        pytest.param({"type": "object", "properties": {}}, "{}", id="pydantic model without fields"),
        pytest.param({"not": {}}, "never", id="zod never"),
        pytest.param({"type": "string", "not": True}, "never", id="a type and never"),
        pytest.param(
            {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
            '"a" | "b"',
            id="titled choices",
        ),
        pytest.param(
            {"type": ["number", "null"], "anyOf": [{"enum": [1, 2.5]}, {"const": None}]},
            "1 | 2.5 | null",
            id="literals of two types",
        ),
        pytest.param(
            {"type": "string", "anyOf": [{"const": "a"}, {"const": True}]},
            'string & ("a" | true)',
            id="literals that the type refuses",
        ),
        pytest.param(
            {"type": "integer", "anyOf": [{"const": 1}, {"minimum": 5}]}, "integer", id="no literals alone"
        ),
        pytest.param(
            {"anyOf": [{"enum": ["red", "blue"], "type": "string"}, {"type": "null"}]},
            '"red" | "blue" | null',
            id="pydantic optional enum",
        ),
        pytest.param(
            {
                "oneOf": [
                    {"type": "object", "properties": {"kind": {"const": "dot"}}, "required": ["kind"]},
                    {
                        "type": "object",
                        "properties": {"kind": {"const": "disc"}, "r": {"type": "number"}},
                        "required": ["kind", "r"],
                    },
                ],
                "discriminator": {"propertyName": "kind"},
            },
            '{"kind": "dot"} | {"kind": "disc", "r": number}',
            id="pydantic discriminated union",
        ),
        pytest.param(
            {
                "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
                "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
            },
            '{"id"?: string, "name"?: string} & ({"id": any} | {"name": any})',
            id="one of two",
        ),
        pytest.param(
            {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}], "maxItems": 2},
            "[number, string]",
            id="pydantic tuple",
        ),
        pytest.param(
            {"type": "object", "unevaluatedProperties": {"type": "integer"}},
            "{[string]: integer}",
            id="unevaluatedProperties",
        ),
        pytest.param(
            {"$dynamicRef": "#n", "$defs": {"N": {"$dynamicAnchor": "n", "type": "null"}}},
            "null",
            id="dynamicRef",
        ),
    ],
)
def test_what_the_libraries_write_reads_as_it_is_meant(schema: Json, text: str) -> None:
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
    assert signature(deep) == '{"a": ' * 12 + "{…}" + "}" * 12


def test_no_subtree_takes_the_room_of_what_stands_beside_it() -> None:
    leaf: JsonObject = {"type": "object", "properties": {f"h{index}": {} for index in range(6)}}
    branch: JsonObject = {"type": "object", "properties": {f"g{index}": leaf for index in range(10)}}
    tree: JsonObject = {"type": "object", "properties": {f"f{index}": branch for index in range(10)}}
    line = signature(
        {"type": "object", "properties": {"filter": tree, "query": {"type": "string"}}, "required": ["query"]}
    )
    assert line.startswith('{"filter"?: {"f0"?: {"g0"?: {…}, "g1"?: {…}, ')
    assert line.endswith('}}, "query": string}')


def test_no_choice_takes_the_room_of_the_names() -> None:
    zones: JsonObject = {"enum": [f"zone-{index}" for index in range(100)]}
    choices: JsonObject = {f"c{index}": zones for index in range(9)}
    line = signature({"type": "object", "properties": {**choices, "last": {}}, "required": ["last"]})
    assert all(f'"{name}"?: ' in line for name in choices)
    assert line.endswith('"last": any}')


def test_a_required_name_is_left_out_last() -> None:
    names = [f"p{index}" for index in range(1000)]
    line = signature(
        {"type": "object", "properties": {name: {} for name in names}, "required": ["p999", "p500"]}
    )
    assert line.endswith('"p61"?: any, "p500": any, "p999": any, …}')


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


def texts_of(value: Json) -> set[str]:
    """Return every text in a JSON value, names among them."""
    match value:
        case str():
            return {value}
        case list():
            return {text for each in value for text in texts_of(each)}
        case dict():
            return set(value) | {text for each in value.values() for text in texts_of(each)}
        case _:
            return set()


@given(st.dictionaries(keywords, json_values, max_size=6))
def test_every_text_in_a_line_is_the_schemas_own(schema: JsonObject) -> None:
    quoted = re.findall(r'"(?:[^"\\]|\\.)*"', signature(schema))
    assert {json.loads(each) for each in quoted} <= texts_of(schema)


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), json_values, max_size=30),
    st.randoms(),
)
def test_every_required_name_stands_in_the_line(properties: JsonObject, random: Random) -> None:
    required: list[Json] = random.sample(sorted(properties), len(properties) // 2)
    line = signature({"type": "object", "properties": properties, "required": required})
    for name in required:
        assert f"{printable_json(name)}: " in line


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
