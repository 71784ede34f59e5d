"""``x-mcp-header``: the rules, what is mirrored and how it is written. SPEC §connection."""

import base64
import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import (
    decode_header_value,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
)
from mcp.shared.inbound import x_mcp_header_map as sdk_map

from app.core.json_value import Json, JsonObject
from app.core.param_headers import AnnotationInvalid, encode_value, fault, headers, present_arguments
from app.core.schemas import validate

pytestmark = pytest.mark.spec("connection")


def schema(**properties: Json) -> bytes:
    return orjson.dumps({"type": "object", "properties": properties})


def annotated(name: Json, kind: Json = "string") -> JsonObject:
    return {"type": kind, "x-mcp-header": name}


NESTED = schema(
    area=annotated("area"),
    n=annotated("Num", "integer"),
    deep={"type": "object", "properties": {"flag": annotated("Flag", "boolean")}},
    plain={"type": "string"},
)


def test_annotated_arguments_are_mirrored_at_any_depth() -> None:
    assert fault(NESTED) is None
    assert headers(NESTED, {"area": "north", "n": 42, "deep": {"flag": True}, "plain": "x"}) == {
        "Mcp-Param-area": "north",
        "Mcp-Param-Num": "42",
        "Mcp-Param-Flag": "true",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"area": None, "n": None},
        {"deep": None},
        {"deep": {}},
        {"deep": "x"},
        {"deep": {"flag": None}},
        {"area": []},
    ],
)
def test_absent_and_null_arguments_have_no_header(arguments: JsonObject) -> None:
    assert headers(NESTED, arguments) == {}


@pytest.mark.parametrize(
    "value, text",
    [
        (0, "0"),
        (-7, "-7"),
        (2**53 - 1, "9007199254740991"),
        (-(2**53) + 1, "-9007199254740991"),
        (2**64 - 1, "18446744073709551615"),
        (42.0, "42"),
        (-0.0, "0"),
        (1.5, "1.5"),
        (1e300, "1e+300"),
        (True, "true"),
        (False, "false"),
        ("", ""),
    ],
)
def test_values_are_written_as_decimal_and_lower_case_words(value: Json, text: str) -> None:
    assert headers(NESTED, {"n": value}) == {"Mcp-Param-Num": text}


@pytest.mark.parametrize(
    "properties",
    [
        {"a": annotated("")},
        {"a": annotated("with space")},
        {"a": annotated("with:colon")},
        {"a": annotated("Région")},
        {"a": annotated("x\ny")},
        {"a": annotated("x\n")},
        {"a": annotated(5)},
        {"a": annotated(None)},
        {"a": annotated("A", "number")},
        {"a": annotated("A", "object")},
        {"a": annotated("A", "array")},
        {"a": annotated("A", "null")},
        {"a": annotated("A", ["string", "null"])},
        {"a": {"x-mcp-header": "A"}},
        {"a": annotated("Same"), "b": annotated("Same")},
        {"a": annotated("Same"), "b": {"type": "object", "properties": {"c": annotated("sAME")}}},
        {"a": {"type": "array", "items": annotated("A")}},
        {"a": {"type": "array", "prefixItems": [annotated("A")]}},
        {"a": {"oneOf": [annotated("A")]}},
        {"a": {"anyOf": [{"properties": {"b": annotated("A")}}]}},
        {"a": {"not": annotated("A")}},
        {"a": {"type": "object", "additionalProperties": annotated("A")}},
        {"a": {"type": "object", "patternProperties": {"x": annotated("A")}}},
        {"a": {"if": annotated("A")}},
    ],
)
def test_an_annotation_that_breaks_a_rule_is_a_fault(properties: JsonObject) -> None:
    raw = schema(**properties)
    assert fault(raw)
    assert find_invalid_x_mcp_header(orjson.loads(raw)) is not None
    with pytest.raises(AnnotationInvalid):
        headers(raw, {})


@pytest.mark.parametrize(
    "root",
    [
        {"type": "object", "x-mcp-header": "A"},
        {"type": "string", "x-mcp-header": "A"},
        {"type": "object", "$defs": {"a": annotated("A")}, "properties": {"a": {"$ref": "#/$defs/a"}}},
        {"type": "object", "allOf": [{"properties": {"a": annotated("A")}}]},
        {"type": "object", "dependentSchemas": {"a": {"properties": {"a": annotated("A")}}}},
    ],
)
def test_an_annotation_that_no_property_path_reaches_is_a_fault(root: JsonObject) -> None:
    assert fault(orjson.dumps(root))


@pytest.mark.parametrize(
    "properties",
    [
        {"x-mcp-header": {"type": "string"}},
        {"a": {"type": "string", "default": {"x-mcp-header": ""}}},
        {"a": {"type": "object", "properties": {"properties": annotated("A")}}},
        {"a": {"enum": ["x-mcp-header"]}},
        {"a": annotated("!#$%&'*+.^_`|~09azAZ-")},
    ],
)
def test_what_annotates_nothing_is_no_fault(properties: JsonObject) -> None:
    assert fault(schema(**properties)) is None


def test_a_property_named_like_a_keyword_is_mirrored_from_its_path() -> None:
    raw = schema(properties={"type": "object", "properties": {"items": annotated("A")}})
    assert headers(raw, {"properties": {"items": "v"}}) == {"Mcp-Param-A": "v"}


@pytest.mark.parametrize(
    "text, header",
    [
        ("us-west1", "us-west1"),
        ("us west 1", "us west 1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?BASE64?literal?=", "=?BASE64?literal?="),
        ("=?base64?open", "=?base64?open"),
        ("", ""),
        (" ", "=?base64?IA==?="),
    ],
)
def test_the_encodings_of_the_specification(text: str, header: str) -> None:
    assert encode_value(text) == header


def test_a_lone_surrogate_is_sent_as_a_replacement_character() -> None:
    expected = base64.b64encode("a\ufffd".encode()).decode()
    assert encode_value("a\ud800") == f"=?base64?{expected}?="


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_survives_and_no_header_can_be_split(text: str) -> None:
    header = encode_value(text)
    assert re.fullmatch(r"[\x20-\x7e]*", header)
    assert header == header.strip(" ")
    assert decode_header_value(header) == text


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t")))
def test_what_the_reference_implementation_sends_plain_is_sent_plain(text: str) -> None:
    if encode_header_value(text) == text:
        assert encode_value(text) == text


arguments = st.fixed_dictionaries(
    {},
    optional={
        "area": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
        "n": st.none() | st.integers(-(2**53), 2**53),
        "deep": st.none() | st.fixed_dictionaries({}, optional={"flag": st.none() | st.booleans()}),
    },
)


@given(arguments)
def test_the_headers_are_those_of_the_reference_implementation(given_arguments: JsonObject) -> None:
    theirs = mcp_param_headers(sdk_map(orjson.loads(NESTED)), given_arguments)
    ours = headers(NESTED, given_arguments)
    assert {name: decode_header_value(value) for name, value in ours.items()} == {
        name: decode_header_value(value) for name, value in theirs.items()
    }


@pytest.mark.spec("calls")
def test_a_null_parameter_is_not_there_for_validation_and_stays_in_the_arguments() -> None:
    """The protocol's own suite sends null for an optional boolean that is annotated, and expects the request."""
    raw = orjson.dumps(
        {
            "type": "object",
            "properties": {
                "region": annotated("Region"),
                "verbose": annotated("Verbose", "boolean"),
                "query": {"type": "string"},
                "deep": {"type": "object", "properties": {"flag": annotated("Flag", "boolean")}},
            },
            "required": ["region"],
        }
    )
    sent: JsonObject = {"region": "us", "verbose": None, "deep": {"flag": None, "x": 1}}
    assert present_arguments(raw, sent) == {"region": "us", "deep": {"x": 1}}
    assert sent == {"region": "us", "verbose": None, "deep": {"flag": None, "x": 1}}
    assert validate(raw, present_arguments(raw, sent)) == []
    assert validate(raw, present_arguments(raw, {"region": None})) == [("/region", "is required")]
    assert validate(raw, present_arguments(raw, {"region": "us", "query": None})) == [
        ("/query", "must be of type string")
    ]


def test_arguments_without_annotations_are_the_same_object() -> None:
    given_arguments: JsonObject = {"a": None}
    assert present_arguments(schema(a={"type": "string"}), given_arguments) is given_arguments
