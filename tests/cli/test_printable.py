"""No control character of a stranger reaches the terminal. SPEC §cli."""

import unicodedata

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli.printable import one_line, printable, printable_json

MOVES = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
"""What changes the direction of what comes after. UAX 9."""


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain\n\ttext", "plain\n\ttext"),
        ("a\r\nb", "a\nb"),
        ("over\rwritten", "over\\x0dwritten"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("\x9b31m", "\\x9b31m"),
        ("\x7f", "\\x7f"),
        ("rm \u202e txt.exe", "rm \\u202e txt.exe"),
        ("a\u061cb\u200fc", "a\\u061cb\\u200fc"),
        ("in\u200bvisi\u00adble\U000e0041", "in\\u200bvisi\\xadble\\U000e0041"),
        ("one\u2028line", "one\\u2028line"),
        ("\ud800", "\\ud800"),
        ("👩\u200d👧 नमस्\u200dते", "👩\u200d👧 नमस्\u200dते"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
        ("日本語 é", "日本語 é"),
    ],
)
def test_unsafe_characters_are_written_as_their_codes(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(alphabet=st.characters(codec=None)))
def test_whatever_comes_nothing_but_tab_and_line_feed_controls(text: str) -> None:
    shown = printable(text)
    shown.encode()
    controls = {character for character in shown if unicodedata.category(character) == "Cc"}
    assert controls <= {"\n", "\t"}
    assert not {unicodedata.bidirectional(character) for character in shown} & MOVES


@settings(max_examples=30)
@given(st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner) | st.lists(inner)))
def test_json_without_unsafe_characters_is_the_same_value(value: object) -> None:
    shown = printable_json(orjson.dumps(value).decode())
    assert orjson.loads(shown) == value
    assert printable(shown) == shown


@given(st.text(), st.integers(min_value=1, max_value=50))
def test_a_cell_is_one_bounded_line(text: str, limit: int) -> None:
    line = one_line(text, limit=limit)
    assert len(line) <= limit
    assert "\n" not in line
