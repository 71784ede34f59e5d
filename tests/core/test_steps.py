"""The steps of an operation are values."""

import pytest

from app.core.steps import Completed, Send, Wait

pytestmark = pytest.mark.spec("calls")


def test_steps_of_the_same_content_are_equal_and_a_completed_one_has_no_size_of_its_own() -> None:
    assert Wait(0.05, Send("tasks/get", {"taskId": "t"})) == Wait(0.05, Send("tasks/get", {"taskId": "t"}))
    assert Completed({}) == Completed({}, 0)
