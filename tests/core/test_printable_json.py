"""JSON that prints as what it is. SPEC §addresses."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.json_value import Json
from app.core.printable_json import printable_json

pytestmark = pytest.mark.spec("addresses")

texts = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | texts,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(texts, below, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "value, text",
    [
        ("\u202e\u2028\x7f\x85", r'"\u202e\u2028\u007f\u0085"'),
        ("\U000e0001", r'"\udb40\udc01"'),
        ("日本 語\n", '"日本 語\\n"'),
        ({"b": [1, 1.5], "a": None}, '{"b":[1,1.5],"a":null}'),
    ],
)
def test_known_texts(value: Json, text: str) -> None:
    assert printable_json(value) == text


@given(json_values, st.booleans())
def test_the_text_prints_and_means_the_value(value: Json, is_indented: bool) -> None:
    text = printable_json(value, is_indented=is_indented)
    assert json.loads(text) == value
    assert (text.replace("\n", "") if is_indented else text).isprintable()
