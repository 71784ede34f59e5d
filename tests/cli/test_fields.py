"""What the fields of a form are, and what a typed line means for each. SPEC §cli, §calls."""

from typing import Any

import pytest

from app.cli.fields import Choice, Field, NotAnAnswer, fields_of
from app.core.json_value import Json, JsonObject

COLOURS: JsonObject = {"type": "string", "enum": ["red", "sea green"]}
TITLED: JsonObject = {
    "type": "string",
    "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}],
}
LEGACY: JsonObject = {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}
DIGITS: JsonObject = {"type": "string", "enum": ["2", "1"]}
SEVERAL: JsonObject = {"type": "array", "items": {"type": "string", "enum": ["red", "blue"]}, "minItems": 1}
SEVERAL_TITLED: JsonObject = {
    "type": "array",
    "items": {"anyOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]},
}


def field(schema: JsonObject) -> Field:
    [only] = fields_of({"type": "object", "properties": {"it": schema}, "required": ["it"]})
    return only


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    "schema, line, value",
    [
        (COLOURS, "red", "red"),
        (COLOURS, " 2 ", "sea green"),
        (COLOURS, "RED", "red"),
        (TITLED, "green", "#0f0"),
        (TITLED, "#f00", "#f00"),
        (TITLED, "2", "#0f0"),
        (LEGACY, "Green", "g"),
        (DIGITS, "1", "1"),
        (SEVERAL, "blue, 1", ["blue", "red"]),
        (SEVERAL, "red,red", ["red"]),
        (SEVERAL, "", []),
        (SEVERAL_TITLED, "Green,#f00", ["#0f0", "#f00"]),
        ({"type": "boolean"}, "Y", True),
        ({"type": "boolean"}, "false", False),
        ({"type": "integer"}, "-7", -7),
        ({"type": "number"}, " 2.5e1 ", 25.0),
        ({"type": "string"}, "  as typed ", "  as typed "),
        ({"type": "string", "format": "email"}, " a@b.example ", "a@b.example"),
        ({"type": "string", "format": "uri"}, "https://x.example/y?z", "https://x.example/y?z"),
        ({"type": "string", "format": "uri"}, "urn:isbn:1", "urn:isbn:1"),
        ({"type": "string", "format": "date"}, "2028-02-29", "2028-02-29"),
        ({"type": "string", "format": "date-time"}, "2026-12-31T23:59:00.25Z", "2026-12-31T23:59:00.25Z"),
        ({"type": "string", "format": "date-time"}, "2026-12-31T23:59:00+01:00", "2026-12-31T23:59:00+01:00"),
        ({"type": "string", "format": "hostname"}, "any thing", "any thing"),
        ({"type": "object"}, '{"a": [1]}', {"a": [1]}),
        ({}, "null", None),
    ],
)
def test_a_line_gives_the_value_that_the_field_wants(schema: JsonObject, line: str, value: Json) -> None:
    given = field(schema).value_of(line)
    assert (given, type(given)) == (value, type(value))


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    "schema, line",
    [
        (COLOURS, "pink"),
        (COLOURS, "0"),
        (COLOURS, "3"),
        (DIGITS, "3"),
        (SEVERAL, "red,pink"),
        ({"type": "boolean"}, "perhaps"),
        ({"type": "integer"}, "1.5"),
        ({"type": "integer"}, "many"),
        ({"type": "integer"}, "true"),
        ({"type": "number"}, "1,5"),
        ({"type": "string", "format": "email"}, "nobody"),
        ({"type": "string", "format": "uri"}, "no uri"),
        ({"type": "string", "format": "uri"}, "http://["),
        ({"type": "string", "format": "date"}, "2026-02-29"),
        ({"type": "string", "format": "date"}, "20260228"),
        ({"type": "string", "format": "date-time"}, "2026-12-31 23:59"),
        ({"type": "string", "format": "date-time"}, "2026-12-31T25:00:00Z"),
        ({"type": "object"}, "{"),
    ],
)
def test_another_line_says_what_is_needed(schema: JsonObject, line: str) -> None:
    with pytest.raises(NotAnAnswer, match=r"^it must be \S"):
        field(schema).value_of(line)


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "schema, hint",
    [
        (COLOURS, "1-2 or the value"),
        (DIGITS, "the value"),
        (SEVERAL, "1-2 or the value, several parted by commas, at least 1 of them"),
        ({"type": "boolean"}, "y or n"),
        ({"type": "integer", "minimum": 1, "maximum": 9}, "a whole number, at least 1, at most 9"),
        ({"type": "string", "minLength": 2}, "at least 2 characters"),
        ({"type": "string", "format": "date"}, "a date such as 2026-12-31"),
        ({"type": "string"}, ""),
    ],
)
def test_a_field_says_what_it_wants(schema: JsonObject, hint: str) -> None:
    assert field(schema).hint == hint


def test_the_fields_come_in_the_order_of_their_server() -> None:
    properties: dict[str, Any] = {"b": {"type": "boolean"}, "a": TITLED, "c": "no schema"}
    fields = fields_of({"type": "object", "properties": properties, "required": ["a"]})
    assert [(each.name, each.kind, each.is_required) for each in fields] == [
        ("b", "yes-no", False),
        ("a", "choice", True),
        ("c", "json", False),
    ]
    assert fields[1].choices == (Choice("#f00", "Red"), Choice("#0f0", "Green"))
    assert fields_of({"type": "object"}) == []
