"""A form is asked field by field, until it fits or is refused. SPEC §cli, §calls."""

import io
from typing import Any

import pytest
from rich.console import Console

from app.cli.forms import Refused, fill_in
from app.cli.screen import Screen
from app.core.json_value import JsonObject

PROPERTIES: dict[str, Any] = {
    "who": {"type": "string", "title": "Your name", "minLength": 2},
    "size": {"type": "integer", "description": "In inches.", "minimum": 10, "default": 12},
    "note": {"type": "string"},
}
SCHEMA: JsonObject = {"type": "object", "properties": PROPERTIES, "required": ["who", "size"]}


def filled(schema: JsonObject, *lines: str) -> tuple[JsonObject | str, str]:
    """Return the answers, or the refusal, and what was shown and asked."""
    written = io.StringIO()
    console = Console(file=written, width=200)
    remaining = iter(lines)

    def ask(prompt: str) -> str:
        written.write(prompt)
        try:
            line = next(remaining)
        except StopIteration:
            raise EOFError from None
        written.write(f"{line}\n")
        return f"{line}\n"

    try:
        given: JsonObject | str = fill_in(schema, screen=Screen(console, console), ask=ask)
    except Refused as refused:
        given = refused.refusal
    assert next(remaining, None) is None, "a line was not asked for"
    return given, written.getvalue()


@pytest.mark.spec("cli")
def test_a_form_looks_like_this() -> None:
    given, shown = filled(SCHEMA, "A", "Ann", "9", "", "", "y")
    assert given == {"who": "Ann", "size": 12}
    assert shown.splitlines()[1:] == [
        "who  Your name",
        "  (at least 2 characters) > A",
        "  ✗ who: it must have at least 2 characters",
        "  (at least 2 characters) > Ann",
        "size",
        "  In inches.",
        "  (a whole number, at least 10; default 12) > 9",
        "  ✗ size: it must be at least 10",
        "  (a whole number, at least 10; default 12) > ",
        "note  (optional)",
        "  > ",
        "Send it? [y]es, [a]gain, [d]ecline, [c]ancel: y",
    ]


@pytest.mark.spec("cli", "calls")
@pytest.mark.parametrize(
    "lines, given",
    [
        (["Ann", "14", "hot", "y"], {"who": "Ann", "size": 14, "note": "hot"}),
        (["", "/skip", "Ann", "/skip", "", "", "yes"], {"who": "Ann", "size": 12}),
        (["Ann", "", "/empty", "send"], {"who": "Ann", "size": 12, "note": ""}),
        (["Ann", "", "//decline", "y"], {"who": "Ann", "size": 12, "note": "/decline"}),
        (["Ann", "11", "hot", "a", "", "13", "", "y"], {"who": "Ann", "size": 13, "note": "hot"}),
        (["Ann", "11", "hot", "a", "", "", "/skip", "y"], {"who": "Ann", "size": 11}),
        (["Ann", "", "", "", "what", "y"], {"who": "Ann", "size": 12}),
        (["/decline"], "decline"),
        (["Ann", "/Cancel"], "cancel"),
        (["Ann", "", "", "d"], "decline"),
        (["Ann", "", "", "c"], "cancel"),
    ],
)
def test_what_is_typed_is_what_is_answered(lines: list[str], given: JsonObject | str) -> None:
    assert filled(SCHEMA, *lines)[0] == given


@pytest.mark.spec("cli")
def test_choices_are_listed_with_their_titles() -> None:
    choices = [{"const": "s", "title": "Small[b]"}, {"const": "l", "title": "Large\x1b[2J"}]
    properties: dict[str, Any] = {
        "size": {"type": "string", "oneOf": choices, "default": "s"},
        "extras": {"type": "array", "items": {"type": "string", "enum": ["1", "2"]}, "default": ["1"]},
        "sure": {"type": "boolean", "default": False},
    }
    given, shown = filled({"type": "object", "properties": properties}, "2", "/empty", "", "y")
    assert given == {"size": "l", "extras": [], "sure": False}
    assert shown.splitlines()[1:] == [
        "size  (optional)",
        "  1  s  Small[b]",
        "  2  l  Large\\x1b[2J",
        "  (1-2 or the value; default s) > 2",
        "extras  (optional)",
        "  -  1",
        "  -  2",
        "  (the value, several parted by commas; default 1) > /empty",
        "sure  (optional)",
        "  (y or n; default n) > ",
        "Send it? [y]es, [a]gain, [d]ecline, [c]ancel: y",
    ]


@pytest.mark.spec("cli", "calls")
def test_answers_that_do_not_fit_together_are_asked_again() -> None:
    schema: JsonObject = {**SCHEMA, "dependentRequired": {"note": ["size", "phone"]}}
    given, shown = filled(schema, "Ann", "", "hot", "", "", "/skip", "y")
    assert given == {"who": "Ann", "size": 12}
    assert "✗ the answers: it lacks a property that another one requires" in shown


@pytest.mark.spec("cli")
def test_a_form_without_fields_is_a_yes_or_no() -> None:
    assert filled({"type": "object", "properties": {}}, "y")[0] == {}
    assert filled({"type": "object"}, "d")[0] == "decline"


def test_a_person_who_leaves_answers_nothing() -> None:
    with pytest.raises(EOFError):
        filled(SCHEMA, "Ann")
