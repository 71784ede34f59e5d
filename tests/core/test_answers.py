"""What is known of progress after several reports of it."""

import pytest

from app.core.answers import Progress, Result
from app.core.json_value import JsonObject

pytestmark = pytest.mark.spec("calls")


def test_what_a_progress_leaves_out_stays_as_it_was() -> None:
    assert Progress(1).following(Progress(0, 3, "a")) == Progress(1, 3, "a")
    assert Progress(1, 4, "b").following(Progress(0, 3, "a")) == Progress(1, 4, "b")
    assert Progress(1).following(None) == Progress(1)


def test_a_progress_shows_what_is_known_as_the_peer_wrote_it() -> None:
    assert Progress(1.0, 2.5, "a").document() == {"progress": 1, "total": 2.5, "message": "a"}
    assert type(Progress(1.0).document()["progress"]) is int
    assert Progress(0.5).document() == {"progress": 0.5}


def test_a_result_is_measured_by_itself_and_not_by_its_message() -> None:
    value: JsonObject = {"text": "\u00e9" * 10}
    assert not Result(value, 32).is_larger_than(32)
    assert not Result(value, 71).is_larger_than(31), "sent with escapes and an envelope"
    assert Result(value, 71).is_larger_than(30)
    assert not Result(value, 30).is_larger_than(30), "a message within the limit is not looked into"
