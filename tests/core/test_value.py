"""value.py: what a value is at run time; that nobody changes one is the type checker's to see."""

import pytest

from app.core.value import value

pytestmark = pytest.mark.spec("calls")


@value
class Pair:
    """Two words."""

    first: str
    second: str = "b"


def test_values_of_the_same_fields_are_equal_and_one_key() -> None:
    assert Pair("a") == Pair(first="a", second="b") != Pair("b")
    assert {Pair("a"): 1}[Pair("a", "b")] == 1


def test_a_value_has_no_room_for_more_than_its_fields() -> None:
    assert not hasattr(Pair("a"), "__dict__")


def test_a_value_says_what_it_is_and_is_taken_apart_by_a_pattern() -> None:
    match Pair("a"):
        case Pair(first, second):
            assert (first, second) == ("a", "b")
    assert repr(Pair("a")) == "Pair(first='a', second='b')"
