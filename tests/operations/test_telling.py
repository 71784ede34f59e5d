"""Only the run of a tool call is told of its begin and its result."""

from typing import Any

import pytest

from app.core.events import RunEvent, ToolCallEnded, ToolCallStarted
from app.core.operation import Operation
from app.core.problems import ServerChanged
from app.core.steps import Completed, Failed, Send
from app.operations.open_operation import OpenOperation
from app.operations.telling import tell_result, tell_started
from tests.core.test_operation import operation

pytestmark = pytest.mark.spec("agui", "calls")

CONTENT: list[Any] = [{"type": "text", "text": "done"}]


def opened(machine: Operation) -> OpenOperation:
    return OpenOperation(id=machine.id, machine=machine, thread_id=None, deadline=0.0, admit=lambda _: None)


def test_the_begin_of_a_tool_call_is_told_with_its_arguments() -> None:
    told: list[RunEvent] = []
    call = operation(tool="t", tool_call_id="call-1")
    tell_started(opened(call), {"x": 1}, told.append)
    assert told == [ToolCallStarted("op-1", "call-1", "p", "t", {"x": 1})]
    tell_started(opened(operation(request=Send("resources/read", {}))), {}, told.append)
    assert len(told) == 1


@pytest.mark.parametrize("is_error", [False, True])
def test_a_result_is_told_as_what_it_is(*, is_error: bool) -> None:
    told: list[RunEvent] = []
    tell_result("op-1", "call-1", Completed.of({"content": CONTENT, "isError": is_error}), told.append)
    assert told == [ToolCallEnded("op-1", "call-1", is_error, CONTENT)]


@pytest.mark.parametrize(
    ("tool_call_id", "ending"),
    [
        (None, Completed.of({"content": CONTENT})),
        ("call-1", Completed.of({"rejected": True})),
        ("call-1", Failed(ServerChanged("p"))),
        ("call-1", None),
    ],
    ids=["a read", "a rejected proposal", "a Problem", "no end"],
)
def test_what_is_no_result_of_a_tool_is_not_told(
    tool_call_id: str | None, ending: Completed | Failed | None
) -> None:
    told: list[RunEvent] = []
    tell_result("op-1", tool_call_id, ending, told.append)
    assert told == []
