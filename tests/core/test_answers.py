"""What is known of progress after several reports of it."""

import pytest

from app.core.answers import Progress

pytestmark = pytest.mark.spec("calls")


def test_what_a_progress_leaves_out_stays_as_it_was() -> None:
    assert Progress(1).following(Progress(0, 3, "a")) == Progress(1, 3, "a")
    assert Progress(1, 4, "b").following(Progress(0, 3, "a")) == Progress(1, 4, "b")
    assert Progress(1).following(None) == Progress(1)


def test_a_progress_shows_what_is_known_as_the_peer_wrote_it() -> None:
    assert Progress(1.0, 2.5, "a").document() == {"progress": 1, "total": 2.5, "message": "a"}
    assert type(Progress(1.0).document()["progress"]) is int
    assert Progress(0.5).document() == {"progress": 0.5}
