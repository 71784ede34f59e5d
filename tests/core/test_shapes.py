"""Shapes of closed JSON objects. SPEC §definition."""

import pytest

from app.core.shapes import Choice, Constant, Shape, Text, TextArray, TextMap, faults, pointer_to, schema
from app.core.text_rules import TextRule

SHORT = TextRule(
    "At most three characters.", lambda text: "is too long" if len(text) > 3 else None, "^.{0,3}$"
)
CIRCLE = Shape(
    "a circle",
    {"kind": Constant("circle"), "name": Text(SHORT)},
    {"tags": TextArray(SHORT, is_set=True), "notes": TextMap(SHORT, SHORT)},
)
SQUARE = Shape("a square", {"kind": Constant("square"), "side": Text(SHORT)}, {})
FIGURE = Choice("kind", (CIRCLE, SQUARE))


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "value, expected",
    [
        ({"kind": "circle", "name": "a", "tags": ["x", "y"], "notes": {"k": "v"}}, []),
        ({"kind": "square", "side": "1"}, []),
        (None, [("", "must be an object")]),
        ([], [("", "must be an object")]),
        ({"kind": "circle"}, [("/name", "is required")]),
        (
            {"kind": "circle", "name": True, "tags": "x", "notes": []},
            [
                ("/name", "must be a string"),
                ("/tags", "must be an array of strings"),
                ("/notes", "must be an object of strings"),
            ],
        ),
        (
            {
                "kind": "circle",
                "name": "long name",
                "tags": ["a", 1, "a", "long", None, "a"],
                "notes": {"long": "long"},
            },
            [
                ("/name", "is too long"),
                ("/tags/1", "must be a string"),
                ("/tags/2", "is the same as /tags/0"),
                ("/tags/3", "is too long"),
                ("/tags/4", "must be a string"),
                ("/tags/5", "is the same as /tags/0"),
                ("/notes/long", "is too long"),
                ("/notes/long", "is too long"),
            ],
        ),
        (
            {"kind": "square", "side": "1", "name": "a", "a/b~c": 1},
            [("/name", "is not a member of a square"), ("/a~1b~0c", "is not a member of a square")],
        ),
        ({"side": 1}, [("/kind", "is required: 'circle' or 'square'"), ("/side", "must be a string")]),
        ({"kind": [], "side": "1"}, [("/kind", "must be 'circle' or 'square'")]),
        ({"kind": "circle", "name": "\0"}, [("/name", "must not contain a NUL character")]),
        (
            {"kind": "circle", "name": "\ud800"},
            [("/name", "must be Unicode text: it contains a lone surrogate")],
        ),
    ],
)
def test_every_fault_is_found_and_told_by_pointer(value: object, expected: list[tuple[str, str]]) -> None:
    assert list(faults(FIGURE, value)) == expected


@pytest.mark.spec("definition")
def test_a_pointer_is_one_that_can_be_shown() -> None:
    assert pointer_to("a", 0, "b/c~d") == "/a/0/b~1c~0d"
    assert pointer_to("x\r\n\x1b\ud800") == "/x" + "\ufffd" * 4
    assert pointer_to("k" * 200) == f"/{'k' * 128}…"


@pytest.mark.spec("definition")
def test_a_choice_needs_a_constant_to_choose_by() -> None:
    with pytest.raises(TypeError, match="a circle"):
        list(faults(Choice("name", (CIRCLE,)), {}))


@pytest.mark.spec("definition")
def test_the_schema_of_a_choice_is_the_schemas_of_its_shapes() -> None:
    text = {"type": "string", "description": "At most three characters.", "pattern": "^.{0,3}$"}
    assert schema(FIGURE) == {
        "oneOf": [
            {
                "title": "a circle",
                "type": "object",
                "properties": {
                    "kind": {"const": "circle"},
                    "name": text,
                    "tags": {"type": "array", "items": text, "uniqueItems": True},
                    "notes": {
                        "type": "object",
                        "propertyNames": {"pattern": "^.{0,3}$"},
                        "additionalProperties": text,
                    },
                },
                "required": ["kind", "name"],
                "additionalProperties": False,
            },
            {
                "title": "a square",
                "type": "object",
                "properties": {"kind": {"const": "square"}, "side": text},
                "required": ["kind", "side"],
                "additionalProperties": False,
            },
        ]
    }
