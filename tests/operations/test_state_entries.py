"""What the state shows of an operation and its questions."""

from dataclasses import replace
from typing import Any

import pytest

from app.core.answers import Progress
from app.core.events import Interrupt
from app.core.interrupts import Question
from app.core.operation import Operation, Send, Work
from app.operations.open_operation import OpenOperation
from app.operations.state_entries import MESSAGE_MAX, interaction_entry, operation_entry

pytestmark = pytest.mark.spec("agui")

WORK = Work("k", "p", "stdio", Send("m", {}), lambda value: value, 10, tool="t")
QUESTION = Question("tool_call", "?", {}, {})


def opened(thread_id: str | None = None, **members: Any) -> OpenOperation:
    machine = Operation("op-1", replace(WORK, **members))
    machine.begin()
    return OpenOperation(machine.id, machine, thread_id=thread_id, deadline=0, admit=lambda _: None)


def test_an_operation_shows_its_subject_and_where_it_stands() -> None:
    assert operation_entry(opened()) == {"server": "p", "tool": "t", "state": "working"}
    assert operation_entry(opened(tool=None)) == {"server": "p", "state": "working"}
    assert operation_entry(opened(consent=(QUESTION,)))["state"] == "input_required"


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        (Progress(0.0), {"progress": 0}),
        (Progress(1.5, 3, ""), {"progress": 1.5, "total": 3, "message": ""}),
        (Progress(1, None, "m" * MESSAGE_MAX), {"progress": 1, "message": "m" * MESSAGE_MAX}),
        (Progress(1, None, "m" * 1024), {"progress": 1, "message": "m" * (MESSAGE_MAX - 1) + "…"}),
    ],
)
def test_progress_is_shown_where_there_is_any_and_its_message_is_bounded(
    progress: Progress, shown: Any
) -> None:
    operation = opened()
    operation.progress = progress
    assert operation_entry(operation)["progress"] == shown


def test_a_question_shows_whose_it_is_and_its_beginning() -> None:
    interrupt = Interrupt("int-1", "op-1", "tool_call", "q" * 300, "2026-11-30T11:45:19Z", {}, {})
    entry = {
        "operation": "op-1",
        "server": "p",
        "tool": "t",
        "message": "q" * 199 + "…",
        "expiresAt": "2026-11-30T11:45:19Z",
    }
    assert interaction_entry(opened(), interrupt) == entry
    assert interaction_entry(opened("thread-1"), interrupt) == {**entry, "threadId": "thread-1"}
