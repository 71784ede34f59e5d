"""The steps of an operation are values."""

import pytest

from app.core.steps import Completed, Send, Wait

pytestmark = pytest.mark.spec("calls")


def test_steps_of_the_same_content_are_equal() -> None:
    assert Wait(0.05, Send("tasks/get", {"taskId": "t"})) == Wait(0.05, Send("tasks/get", {"taskId": "t"}))
    assert Completed.of({"status": 200}) == Completed.of({"status": 200})
