"""Canonical JSON: RFC 8785 where it has a form, deterministic where it has none. SPEC §actions."""

import random

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from app.core.canonical import canonical, revision
from app.core.json_value import Json

pytestmark = pytest.mark.spec("actions")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(texts, below, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_the_form_is_that_of_rfc_8785(value: Json) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value, form",
    [
        ({"b": 1, "a": [1.0, 1e21, 1e-7, 0.1]}, b'{"a":[1,1e+21,1e-7,0.1],"b":1}'),
        ({"\ufb33": 1, "😀": 2, "a": 3}, '{"a":3,"😀":2,"\ufb33":1}'.encode()),
        ('\u20ac$\x0f\nA\'B"\\\\"/\x7f', '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/\x7f"'.encode()),
    ],
    ids=["numbers", "utf-16 order", "escapes"],
)
def test_known_forms(value: Json, form: bytes) -> None:
    assert canonical(value) == form


def test_integers_that_rfc_8785_refuses_keep_apart() -> None:
    assert canonical({"b": 2**53, "a": 1}) == b'{"a":1,"b":9007199254740992}'
    assert canonical([2**64 - 1]) != canonical([2**64 - 2])
    assert canonical(2**53 + 1) != canonical(2**53)


@given(json_values, st.randoms(use_true_random=False))
def test_key_order_does_not_matter(value: Json, chance: random.Random) -> None:
    assert canonical(shuffled(value, chance)) == canonical(value)


def shuffled(value: Json, chance: random.Random) -> Json:
    if isinstance(value, list):
        return [shuffled(each, chance) for each in value]
    if isinstance(value, dict):
        items = [(key, shuffled(each, chance)) for key, each in value.items()]
        chance.shuffle(items)
        return dict(items)
    return value


def test_entries_are_hashed_as_one_array() -> None:
    assert revision([b'{"a":1}', b'{"b":2}']) != revision([b'{"b":2}', b'{"a":1}'])
    assert revision([canonical({"b": 1, "a": 2})]) == revision([canonical({"a": 2, "b": 1})])
