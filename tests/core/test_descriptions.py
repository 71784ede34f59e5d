"""descriptions.py: what a server writes about a tool, made readable without a word changed. SPEC §addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.descriptions import DESCRIPTION_MAX, clean, readable

pytestmark = pytest.mark.spec("addresses")

DOCSTRING = """Add two numbers.

    Args:
        a: the first
        b: the second\x20\x20



    Returns their sum.
    """


@pytest.mark.parametrize(
    "text, shown",
    [
        ("Get current time", "Get current time"),
        ("", ""),
        (" \n\n ", ""),
        (
            DOCSTRING,
            "Add two numbers.\n\nArgs:\n    a: the first\n    b: the second\n\nReturns their sum.",
        ),
        ("\n    Indented.\n\n      More.\n", "Indented.\n\n  More."),
        ("a\r\nb\rc", "a\nb\nc"),
        ("- x\n\t- y", "- x\n- y"),
        ("\x1b[2J\u202eabc\ufeff", "\ufffd[2J\ufffdabc\ufffd"),
        ("\U0001f469\u200d\U0001f4bb and \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",) * 2,
    ],
)
def test_a_description_reads_well(text: str, shown: str) -> None:
    assert readable(text) == shown


def test_a_long_description_ends_at_a_word() -> None:
    assert readable("one two three", limit=9) == "one two…"
    assert readable("x" * 20_000) == f"{'x' * DESCRIPTION_MAX}…"
    assert readable("a" + " " * 50_000 + "b") == "a…"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 50))
def test_any_description_is_bounded_and_settled(text: str, limit: int) -> None:
    shown = readable(text, limit=limit)
    assert len(shown) <= limit + 1
    assert clean(shown) == shown
    assert readable(shown, limit=limit + 1) == shown
