"""The task of one operation: what each state of it makes of the operation, and where it ends."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.answers import (
    Answer,
    AnswerLost,
    AnswerMalformed,
    AnswerTooLarge,
    HttpRefusal,
    RemoteError,
    RequestFault,
    RequestNotSent,
    Result,
)
from app.core.json_value import JsonObject
from app.core.operation import ROUNDS_MAX, Operation
from app.core.steps import Ask, Completed, Failed, Send, Wait
from app.core.task import MISSES_MAX
from tests.core.test_operation import operation, problem_of
from tests.support.deferring import DONE, TASK, completed, failed, handle, state, wants
from tests.support.eliciting import asks, dismisses, fills, form, link

pytestmark = pytest.mark.spec("calls")

POLL = Wait(0.05, Send("tasks/get", {"taskId": TASK}))


def deferred(**changes: Any) -> Operation:
    """Return an operation whose request became a task."""
    machine = operation(may_ask=True, may_defer=True, **changes)
    machine.begin()
    machine.dispatching(machine.work.request)
    assert arrive(machine, handle()) == POLL
    return machine


def arrive(machine: Operation, value: JsonObject, size: int = 9) -> Any:
    return machine.arrived(Result(value, size))


def updated(responses: JsonObject) -> Send:
    return Send("tasks/update", {"taskId": TASK, "inputResponses": responses})


def test_a_task_is_polled_until_its_result_which_is_that_of_the_request() -> None:
    machine = deferred()
    assert arrive(machine, state("working")) == POLL
    assert machine.task_id == TASK
    assert arrive(machine, completed(), 70) == Completed.of({"status": 200, **DONE})
    assert machine.task_id is None


def test_a_task_may_follow_a_round_of_the_request() -> None:
    machine = operation(may_ask=True, may_defer=True)
    machine.begin()
    arrive(machine, asks(q=form()))
    machine.answered([dismisses("i")])
    assert arrive(machine, handle()) == POLL
    assert isinstance(arrive(machine, wants(q=form())), Ask)


def test_new_requests_are_asked_at_once_each_only_once_and_answered_by_one_update() -> None:
    machine = deferred()
    ask = arrive(machine, wants(a=form("1"), b=link()))
    assert [question.metadata["mode"] for question in ask.questions] == ["form", "url"]
    assert not machine.is_proposed
    responses: JsonObject = {
        "a": {"action": "accept", "content": {"env": "prod"}},
        "b": {"action": "cancel"},
    }
    assert machine.answered([fills("i", env="prod"), dismisses("j")]) == updated(responses)
    assert arrive(machine, {}) == POLL
    # Eventually consistent: the same requests are seen again, and another is new.
    assert arrive(machine, wants(a=form("1"), b=link())) == POLL
    assert [each.message for each in arrive(machine, wants(b=link(), c=form("3"))).questions] == ["3"]
    assert machine.answered([dismisses("k")]) == updated({"c": {"action": "cancel"}})
    assert arrive(machine, {"resultType": "complete"}) == POLL
    assert isinstance(arrive(machine, completed()), Completed)


def test_a_task_that_completed_while_it_was_asked_for_input_is_a_result() -> None:
    machine = deferred()
    arrive(machine, wants(a=form()))
    machine.answered([dismisses("i")])
    assert arrive(machine, {}) == POLL
    assert isinstance(arrive(machine, completed()), Completed)


OVER, LEFT = None, TASK
INVALID = "tool-result-invalid"
ENDS: dict[str, tuple[Answer, str, str, str | None]] = {
    "failed": (Result(failed(), 9), "remote-error", "rejected", OVER),
    "cancelled": (Result(state("cancelled"), 9), "operation-cancelled", "unknown", OVER),
    "failed without error": (Result(state("failed"), 9), INVALID, "executed", OVER),
    "completed without result": (Result(state("completed"), 9), INVALID, "executed", OVER),
    "completed with a task": (Result(completed(handle()), 9), INVALID, "executed", OVER),
    "too large": (Result(completed(x="x" * 1000), 1101), "result-too-large", "executed", LEFT),
    "unknown status": (Result(state("lost"), 9), INVALID, "executed", LEFT),
    "null state": (Result({"resultType": "complete", "taskId": None}, 9), INVALID, "executed", LEFT),
    "nothing asked": (Result(state("input_required"), 9), INVALID, "executed", LEFT),
    "sampling": (
        Result(wants(a=form(), b={"method": "sampling/createMessage"}), 9),
        "input-unsupported",
        "unknown",
        LEFT,
    ),
    "unknown task": (RemoteError(-32602, "Task has expired"), "tool-call-failed", "unknown", OVER),
    "error": (RemoteError(-32603, "no"), "remote-error", "unknown", LEFT),
    "no method": (RemoteError(-32601, "no"), "remote-error", "unknown", LEFT),
    "capability": (RemoteError(-32021, "no"), "capability-required", "unknown", LEFT),
    "refusal": (HttpRefusal(404), "remote-error", "unknown", LEFT),
}


@pytest.mark.spec("problems")
@pytest.mark.parametrize("name", ENDS)
def test_what_ends_a_poll_is_told_apart_and_leaves_a_task_or_none(name: str) -> None:
    answer, code, outcome, left = ENDS[name]
    machine = deferred()
    ended = problem_of(machine.arrived(answer))
    assert (ended["code"], ended["outcome"]) == (code, outcome)
    assert machine.task_id == left


@pytest.mark.spec("problems")
def test_a_failed_task_shows_its_error_and_a_cancelled_one_who_cancelled_it() -> None:
    one, two = deferred(), deferred()
    failure = problem_of(arrive(one, failed(-32000, "boom", data={"k": 1})))
    assert failure["remote"] == {"code": -32000, "message": "boom", "data": {"k": 1}}
    assert problem_of(arrive(two, state("cancelled")))["by"] == "server"


@pytest.mark.spec("problems")
@pytest.mark.parametrize("answer", [RemoteError(-32602, "no"), RemoteError(-32603, "no")])
def test_an_update_that_is_refused_ends_the_operation_and_leaves_the_task(answer: Answer) -> None:
    machine = deferred()
    arrive(machine, wants(a=form()))
    machine.answered([dismisses("i")])
    ended = problem_of(machine.arrived(answer))
    assert (ended["code"], ended["outcome"], machine.task_id) == ("remote-error", "unknown", TASK)


@pytest.mark.parametrize(
    "miss", [RequestNotSent("x"), AnswerLost("x"), *map(HttpRefusal, (429, 502, 503, 504))]
)
def test_a_task_outlives_a_lost_connection_as_long_as_it_comes_back(miss: Any) -> None:
    machine = deferred()

    def lose() -> Any:
        return machine.faulted(miss) if isinstance(miss, RequestFault) else machine.arrived(miss)

    for _ in range(MISSES_MAX):
        assert lose().then == POLL.then
    assert arrive(machine, state("working")) == POLL
    for _ in range(MISSES_MAX):
        assert lose().then == POLL.then
    assert problem_of(lose())["outcome"] == "unknown"
    assert machine.task_id == TASK


@pytest.mark.parametrize(
    ("fault", "outcome"), [(AnswerMalformed("x"), "unknown"), (AnswerTooLarge(9), "executed")]
)
def test_an_answer_that_is_none_ends_the_operation(fault: RequestFault, outcome: str) -> None:
    machine = deferred()
    assert problem_of(machine.faulted(fault))["outcome"] == outcome


def test_a_task_that_asks_for_ever_is_given_up() -> None:
    machine = deferred()
    for number in range(ROUNDS_MAX):
        assert isinstance(arrive(machine, wants(**{f"q{number}": form()})), Ask)
        machine.answered([dismisses("i")])
        assert arrive(machine, {}) == POLL
    assert problem_of(arrive(machine, wants(more=form())))["code"] == "input-rounds-exceeded"


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ({**handle(), "taskId": None}, None),
        ({**handle(), "pollIntervalMs": "1"}, TASK),
        ({**handle(), "status": "submitted"}, TASK),
    ],
    ids=str,
)
def test_a_handle_that_breaks_the_protocol_ends_the_operation(value: JsonObject, left: str | None) -> None:
    machine = operation(may_defer=True)
    machine.begin()
    assert problem_of(arrive(machine, value))["code"] == INVALID
    assert machine.task_id == left, "what has a name is cancelled"


def test_what_is_observed_without_a_task_or_after_the_end_is_a_bug_of_ours() -> None:
    machine = operation()
    machine.begin()
    with pytest.raises(ValueError, match="observes none"):
        machine.observed(Result(completed(), 9))
    ended = deferred()
    ended.cancel("disconnect")
    with pytest.raises(ValueError, match="observes none"):
        ended.observed(Result(completed(), 9))


ARRIVALS: dict[str, Callable[[Operation], Any]] = {
    **{name: lambda machine, each=each[0]: machine.arrived(each) for name, each in ENDS.items()},
    "working": lambda machine: arrive(machine, state("working")),
    "wants a": lambda machine: arrive(machine, wants(a=form())),
    "wants a and b": lambda machine: arrive(machine, wants(a=form(), b=form())),
    "wants c": lambda machine: arrive(machine, wants(c=form())),
    "wants nothing": lambda machine: arrive(machine, wants()),
    "done": lambda machine: arrive(machine, completed()),
    "not sent": lambda machine: machine.faulted(RequestNotSent("x")),
    "lost": lambda machine: machine.faulted(AnswerLost("x")),
    "cancel": lambda machine: machine.cancel("workspace.mcp.cancel"),
    "time out": lambda machine: machine.time_out(1),
    "expire": lambda machine: machine.expire("int-1"),
}
FROM_OUTSIDE = {"cancel", "time out", "expire"}
TELLS: dict[str, JsonObject] = {
    "told working": state("working", lastUpdatedAt=None),
    "told wants d": {**wants(d=form()), "lastUpdatedAt": "2026-07-28T10:31:00Z"},
    "told old": {**wants(e=form()), "lastUpdatedAt": "2026-07-28T10:29:00Z"},
    "told done": completed(),
    "told cancelled": state("cancelled"),
    "told nothing": state("failed"),
}


def tell(machine: Operation, value: JsonObject, step: Any) -> Any:
    """Return the step after what the server tells in the middle of this one."""
    machine.tell(Result(value, 9))
    return step if isinstance(step, Ask) else machine.told() or step


@given(st.lists(st.sampled_from(sorted(ARRIVALS | TELLS)), max_size=30))
def test_whatever_happens_there_is_one_end_and_each_key_is_answered_once(arrivals: list[str]) -> None:
    machine = deferred()
    step: Any = POLL
    ends: list[Any] = []
    answered: list[str] = []
    for arrival in arrivals:
        if arrival in TELLS:
            step = tell(machine, TELLS[arrival], step)
        elif isinstance(step, Ask) and arrival not in FROM_OUTSIDE:
            step = machine.answered([dismisses("i")] * len(step.questions))
            if isinstance(step, Send):
                answered += cast("JsonObject", step.params["inputResponses"])
        else:
            step = ARRIVALS[arrival](machine)
        if machine.is_ended:
            ends.append(step)
    assert all(end is ends[0] for end in ends)
    assert machine.is_ended is bool(ends)
    assert len(answered) == len(set(answered))
    if ends and isinstance(ends[0], Completed):
        assert machine.task_id is None
    if not ends:
        assert machine.task_id == TASK or isinstance(step, Ask)
        assert isinstance(step, Wait | Send | Ask)
    else:
        assert isinstance(ends[0], Completed | Failed)
