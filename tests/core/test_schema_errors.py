"""Errors that say where and what, and never quote a value. SPEC §problems."""

import pytest

from app.core.json_value import Json, JsonObject
from app.core.schemas import validate

pytestmark = pytest.mark.spec("problems")

SECRET = "canary-canary-canary"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


@pytest.mark.parametrize(
    "schema, value, errors",
    [
        ({"type": ["string", "null"]}, 5, [("", "must be of type string or null")]),
        ({"const": {"a": 1}}, SECRET, [("", 'must be {"a":1}')]),
        ({"enum": []}, SECRET, [("", "must be one of ")]),
        ({"enum": ["x" * 500]}, SECRET, [("", f'must be one of "{"x" * 198}')]),
        ({"minimum": 3, "multipleOf": 2}, 1, [("", "must be at least 3"), ("", "must be a multiple of 2")]),
        ({"exclusiveMaximum": 3}, 3, [("", "must be less than 3")]),
        (
            {"$schema": DRAFT_4, "maximum": 3, "exclusiveMaximum": True},
            3,
            [("", "must be at most 3")],
        ),
        ({"pattern": "^[0-9]+$", "maxLength": 3}, SECRET, None),
        ({"minLength": 50}, SECRET, [("", "must have at least 50 characters")]),
        ({"uniqueItems": True, "minItems": 3}, [SECRET, SECRET], None),
        ({"minProperties": 2}, {"a": 1}, [("", "must have at least 2 properties")]),
        (
            {"dependentRequired": {"a": ["b"]}},
            {"a": SECRET},
            [("", "lacks a property that another one requires")],
        ),
        ({"properties": {"a": False}}, {"a": SECRET}, [("/a", "is not allowed here")]),
        ({"required": ["a/b", "c~d"]}, {}, [("/a~1b", "is required"), ("/c~0d", "is required")]),
        (
            {"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": False},
            {"x1": SECRET, "y": SECRET},
            [("/x1", "must be of type null"), ("/y", "is not a known property")],
        ),
        ({"propertyNames": {"maxLength": 2}}, {"abc": 1}, [("/abc", "has a name that is not allowed")]),
        (
            {"prefixItems": [{"type": "string"}], "items": False},
            [1, 2],
            [("/0", "must be of type string"), ("/1", "is not allowed here")],
        ),
        (
            {"$schema": DRAFT_7, "items": [{"type": "string"}], "additionalItems": {"type": "null"}},
            [1, 2],
            [("/0", "must be of type string"), ("/1", "must be of type null")],
        ),
        ({"contains": {"type": "string"}}, [1, 2], [("", "does not fit the schema")]),
        ({"not": {"type": "string"}}, SECRET, [("", "must not fit the schema under 'not'")]),
        (
            {"if": {"type": "string"}, "then": {"maxLength": 1}},
            SECRET,
            [("", "must have at most 1 characters")],
        ),
        ({"if": {"type": "null"}, "else": {"const": 1}}, SECRET, [("", "must be 1")]),
        ({"allOf": [{"minLength": 99}, {"type": "null"}]}, SECRET, None),
        (
            {"oneOf": [{"minLength": 1}, {"type": "string"}]},
            SECRET,
            [("", "must fit one of 2 alternatives and fits 2")],
        ),
        (
            {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 1}]},
            SECRET,
            [("", "must have at most 1 characters")],
        ),
        ({"anyOf": [{"type": "null"}, {"type": "array"}]}, SECRET, [("", "fits none of 2 alternatives")]),
        (
            {
                "oneOf": [
                    {"type": "object", "properties": {"k": {"const": "a"}, "v": {"type": "null"}}},
                    {"$ref": "#/$defs/b"},
                ],
                "$defs": {
                    "b": {"type": "object", "properties": {"k": {"const": "b"}, "v": {"type": "integer"}}}
                },
            },
            {"k": "b", "v": SECRET},
            [("/v", "must be of type integer")],
        ),
        ({"unevaluatedProperties": False}, {"a": SECRET}, [("", "does not fit the schema")]),
        ({"$ref": "#/$defs/a%25b", "$defs": {"a%b": {"type": "null"}}}, 5, [("", "must be of type null")]),
        ({"properties": {"é /%": {"type": "null"}}}, {"é /%": 5}, [("/é ~1%", "must be of type null")]),
    ],
)
def test_each_fault_is_told_where_it_is(
    schema: JsonObject, value: Json, errors: list[tuple[str, str]] | None
) -> None:
    told = validate(schema, value)
    if errors is not None:
        assert [(pointer, phrase[:214]) for pointer, phrase in told] == errors
    assert told
    assert SECRET not in str(told)


def test_at_most_twenty_errors_are_told() -> None:
    many: list[Json] = [1]
    assert len(validate({"items": {"type": "string"}}, many * 1000)) == 20
    wide: JsonObject = {"required": [f"p{index}" for index in range(1000)]}
    assert len(validate(wide, {})) == 20


def test_long_names_of_a_value_are_cut() -> None:
    [(pointer, phrase)] = validate({"additionalProperties": False}, {"n" * 5000: 1})
    assert (len(pointer) < 200, phrase) == (True, "is not a known property")


def test_a_fault_beyond_the_bounds_of_the_walk_is_told_in_general() -> None:
    many: list[Json] = [*([1] * 60_000), "x"]
    assert validate({"items": {"type": "integer"}}, many) == [("", "does not fit the schema")]
    parts: JsonObject = {f"p{index}": {"type": "integer"} for index in range(3000)}
    assert validate({"properties": parts}, {"p2999": "x"}) == [("/p2999", "must be of type integer")]
    most_fit: JsonObject = {f"p{index}": index for index in range(60)}
    assert validate({"properties": parts}, {**most_fit, "p2999": "x"}) == [("", "does not fit the schema")]
