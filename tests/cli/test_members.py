"""What is missing or of another type in an answer costs no command. SPEC §cli."""

import pytest

from app.cli.members import content_text, number, objects_of, text_of
from app.core.json_value import Json, JsonObject

pytestmark = pytest.mark.spec("cli")


@pytest.mark.parametrize("document, text", [({"a": "b"}, "b"), ({"a": 1}, "1"), ({"a": None}, ""), ({}, "")])
def test_a_member_is_text_or_nothing(document: JsonObject, text: str) -> None:
    assert text_of(document, "a") == text


@pytest.mark.parametrize("value, objects", [([{"a": 1}, 2, None], [{"a": 1}]), (None, []), ({"a": 1}, [])])
def test_only_the_objects_of_a_list_count(value: Json, objects: list[JsonObject]) -> None:
    assert objects_of(value) == objects


def test_a_part_of_an_unknown_kind_says_how_large_it_is() -> None:
    part: JsonObject = {"type": "hologram\x1b", "data": "AAAA"}
    assert content_text(part) == "[hologram\\x1b , about 3 bytes; --json has it]"


@pytest.mark.parametrize("value, given", [(1, 1.0), (2.5, 2.5), (True, None), ("1", None), (None, None)])
def test_a_number_is_no_text_and_no_truth(value: Json, given: float | None) -> None:
    assert number(value) == given
