"""What a server tells of a task by itself: when it counts, against which polled state, and when it says nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.answers import Answer, AnswerLost, RemoteError, Result
from app.core.json_value import JsonObject
from app.core.operation import Operation
from app.core.steps import Ask, Completed, Send
from app.core.task import Task
from tests.core.test_operation import operation, problem_of
from tests.core.test_operation_tasks import POLL, arrive, deferred, updated
from tests.support.deferring import DONE, TASK, completed, failed, handle, state, wants
from tests.support.eliciting import dismisses, form

pytestmark = pytest.mark.spec("calls")

EARLIER, LATER = "2026-07-28T10:29:59Z", "2026-07-28T12:30:00.5+02:00"
"""Before and after the moment of every other state."""


def told(machine: Operation, value: JsonObject, size: int = 9) -> Any:
    """Return what follows at once from what the server tells."""
    machine.tell(Result(value, size))
    return machine.told()


def test_each_told_state_is_as_good_as_a_polled_one_and_counts_once() -> None:
    machine = deferred()
    assert machine.told() is None
    assert told(machine, state("working", pollIntervalMs=700)).seconds == 0.7
    assert machine.told() is None
    assert isinstance(told(machine, wants(a=form())), Ask)
    assert machine.answered([dismisses("i")]) == updated({"a": {"action": "cancel"}})
    arrive(machine, {})
    assert told(machine, completed(), 70) == Completed.of({"status": 200, **DONE})
    assert machine.task_id is None


ENDS: dict[str, tuple[JsonObject, int, str]] = {
    "failed": (failed(), 9, "remote-error"),
    "cancelled": (state("cancelled"), 9, "operation-cancelled"),
    "too large": (completed(x="x" * 1000), 1101, "result-too-large"),
    "sampling": (wants(a={"method": "sampling/createMessage"}), 9, "input-unsupported"),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_told_state_ends_the_operation_as_a_polled_one_does(name: str) -> None:
    value, size, code = ENDS[name]
    assert problem_of(told(deferred(), value, size))["code"] == code


NOT_WHOLE: dict[str, JsonObject] = {
    "of another task": completed(taskId="other"),
    "without a task": {"status": "working"},
    "of no status": state("working", status=None),
    "of an unknown status": state("paused"),
    "of an unknown type": completed(resultType="what"),
    "of half an interval": state("working", pollIntervalMs=0.5),
    "completed and no more": state("completed"),
    "completed with a task": completed(handle()),
    "failed and no more": state("failed"),
    "asking for null": state("input_required", inputRequests=None),
}


@pytest.mark.parametrize("value", NOT_WHOLE.values(), ids=NOT_WHOLE)
def test_a_state_that_is_not_whole_says_nothing_and_keeps_what_was_told_before(value: JsonObject) -> None:
    machine = deferred()
    assert told(machine, value) is None
    machine.tell(Result(wants(a=form()), 9))
    assert machine.tell(Result(value, 9)) is False
    assert isinstance(machine.told(), Ask)


def test_what_is_told_without_a_task_or_after_the_end_is_ignored() -> None:
    machine = operation(may_defer=True)
    machine.begin()
    assert told(machine, completed()) is None
    ended = deferred()
    end = ended.cancel("disconnect")
    assert (told(ended, completed()), ended.ending) == (None, end)


@pytest.mark.parametrize(
    ("updated_at", "counts"), [(EARLIER, False), (LATER, True), (None, True), ("soon", True), (7, True)]
)
def test_a_told_state_is_passed_over_where_it_is_known_to_be_older_than_the_last(
    updated_at: Any, *, counts: bool
) -> None:
    machine = deferred()
    arrive(machine, state("working"))
    asking = told(machine, {**wants(a=form()), "lastUpdatedAt": updated_at})
    assert isinstance(asking, Ask) is counts


def test_an_older_told_state_does_not_replace_a_later_one_and_no_state_an_end() -> None:
    machine = deferred()
    machine.tell(Result(state("working", lastUpdatedAt=LATER), 9))
    machine.tell(Result(wants(a=form()), 9))
    assert machine.told() == POLL
    for value in (
        completed(lastUpdatedAt=EARLIER),
        state("working", lastUpdatedAt=LATER),
        state("cancelled"),
    ):
        assert machine.tell(Result(value, 9)) is True
    assert isinstance(machine.told(), Completed)


def test_a_poll_counts_whatever_the_servers_clock_says() -> None:
    machine = deferred()
    arrive(machine, state("working", lastUpdatedAt=LATER))
    assert isinstance(arrive(machine, {**wants(a=form()), "lastUpdatedAt": EARLIER}), Ask)


@pytest.mark.parametrize(
    ("updated_at", "counts"),
    [(EARLIER, False), ("2026-07-28T10:30:00Z", False), (LATER, True), (None, False)],
)
def test_during_a_poll_a_told_state_counts_where_it_is_later_than_the_answer(
    updated_at: Any, *, counts: bool
) -> None:
    machine = deferred()
    machine.tell(Result({**wants(a=form()), "lastUpdatedAt": updated_at}, 9))
    assert isinstance(arrive(machine, state("working")), Ask) is counts
    assert machine.told() is None


def test_during_a_poll_neither_a_question_nor_a_result_gives_way_to_an_older_state() -> None:
    one, two, three = deferred(), deferred(), deferred()
    one.tell(Result(state("working", lastUpdatedAt=EARLIER), 9))
    assert isinstance(arrive(one, wants(a=form())), Ask)
    two.tell(Result(state("working", lastUpdatedAt=LATER), 9))
    assert isinstance(arrive(two, completed()), Completed)
    three.tell(Result(state("working", lastUpdatedAt=LATER), 9))
    assert arrive(three, wants(a=form())) == POLL


ARRIVALS: list[Answer | AnswerLost] = [
    Result(state("working", lastUpdatedAt=LATER), 9),
    Result({"status": None}, 9),
    RemoteError(-32602, "unknown"),
    AnswerLost("x"),
]


@pytest.mark.parametrize("arrival", ARRIVALS, ids=str)
def test_the_told_end_counts_whatever_becomes_of_the_request_under_way(arrival: Answer | AnswerLost) -> None:
    machine = deferred()
    assert machine.tell(Result(completed(), 9)) is True
    end = machine.faulted(arrival) if isinstance(arrival, AnswerLost) else machine.arrived(arrival)
    assert isinstance(end, Completed)


def test_an_update_is_neither_dropped_nor_doubled_for_what_is_told_meanwhile() -> None:
    machine = deferred()
    arrive(machine, wants(a=form()))
    update = machine.answered([dismisses("i")])
    assert told(machine, state("working")) is None
    assert told(machine, wants(a=form(), b=form("b"))) is None
    assert arrive(machine, {}) == POLL
    asking = machine.told()
    assert isinstance(asking, Ask)
    assert [each.message for each in asking.questions] == ["b"]
    assert machine.answered([dismisses("i")]) == updated({"b": {"action": "cancel"}})
    assert update != updated({"b": {"action": "cancel"}})
    assert isinstance(told(machine, completed()), Completed)


@pytest.mark.parametrize(
    "end", [completed(), failed(), state("cancelled")], ids=["completed", "failed", "cancelled"]
)
def test_a_task_that_ends_while_a_person_thinks_ends_the_operation_once_they_answer(end: JsonObject) -> None:
    machine = deferred()
    arrive(machine, wants(a=form()))
    assert machine.tell(Result(end, 9)) is True
    assert machine.ending is None
    assert machine.answered([dismisses("i")]) is machine.ending
    assert machine.is_ended
    assert machine.task_id is None


def test_what_is_told_while_a_person_thinks_waits_for_the_answer_that_is_sent_all_the_same() -> None:
    machine = deferred()
    arrive(machine, wants(a=form()))
    machine.tell(Result(wants(a=form(), b=form("b")), 9))
    assert isinstance(machine.answered([dismisses("i")]), Send)
    assert arrive(machine, {}) == POLL
    assert isinstance(machine.told(), Ask)


@given(st.lists(st.sampled_from(["poll", "tell"]), min_size=1), st.text() | st.datetimes().map(str))
def test_no_time_that_a_server_states_is_an_error(ways: list[str], updated_at: str) -> None:
    task = Task(handle(lastUpdatedAt="0001-01-01T00:00:00+23:59"), "p")
    for way in ways:
        value = state("working", lastUpdatedAt=updated_at)
        if way == "tell":
            task.tell(Result(value, 9))
        else:
            task.observe(task.newest(Result(value, 9)).value)
    assert task.id == TASK
