"""scope_names.py: one order, each once, nothing that a request could not carry."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.scope_names import scope_names, union

pytestmark = pytest.mark.spec("oauth")

NAMES = st.lists(st.text(st.characters(min_codepoint=0x23, max_codepoint=0x5B), min_size=1), max_size=5)


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), ("  ", ()), ("b a", ("b", "a")), ("a  b\ta", ("a", "b")), ('a "b" c\\d é e', ("a", "e"))],
)
def test_a_text_is_split_into_the_names_it_has(text: str, names: tuple[str, ...]) -> None:
    assert scope_names(text) == names


@given(NAMES, NAMES)
def test_a_union_keeps_what_was_there_in_its_place(first: list[str], second: list[str]) -> None:
    both = union(first, second)
    assert set(both) == {*first, *second}
    assert len(both) == len(set(both))
    assert both[: len(set(first))] == union(first)
    assert union(both, second) == both
    assert scope_names(" ".join(both)) == both
