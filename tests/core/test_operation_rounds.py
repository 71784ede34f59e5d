"""The rounds of one operation: what each result that requires input makes of it, and where they end."""

from typing import Any

import pytest

from app.core.answers import AnswerLost, RemoteError, RequestNotSent, Result
from app.core.json_value import JsonObject
from app.core.operation import Ask, Completed, Operation, Send, Wait
from app.core.operation_problems import OperationCancelled
from app.core.operation_state import OperationState
from tests.core.test_operation import ACCEPT, operation, problem_of
from tests.support.eliciting import STATE, asks, declines, fills, form, link, opens

pytestmark = pytest.mark.spec("calls")

PARAMS: JsonObject = {"name": "t", "arguments": {"x": None}}
REQUEST = Send("tools/call", PARAMS, b"{}")


def begun(**changes: Any) -> Operation:
    machine = operation(may_ask=True, request=REQUEST, tool="t", **changes)
    machine.begin()
    machine.dispatching(machine.work.request)
    return machine


def arrive(machine: Operation, value: JsonObject) -> Any:
    return machine.arrived(Result(value, 2))


def test_all_requests_of_a_result_are_one_set_of_questions() -> None:
    machine = begun()
    asked = arrive(machine, asks(state=STATE, a=form("one?"), b=link(message="two?")))
    assert isinstance(asked, Ask)
    assert [each.reason for each in asked.questions] == ["input_required"] * 2
    assert [each.metadata["mode"] for each in asked.questions] == ["form", "url"]
    assert machine.state is OperationState.INPUT_REQUIRED
    assert not machine.is_proposed


def test_the_request_itself_is_sent_again_with_answers_and_state_alone_beside_it() -> None:
    machine = begun()
    arrive(machine, asks(state=STATE, a=form(), b=link()))
    again = machine.answered([fills("i", env="prod"), opens("j")])
    responses: JsonObject = {"a": {"action": "accept", "content": {"env": "prod"}}, "b": {"action": "accept"}}
    assert again == Send("tools/call", {**PARAMS, "inputResponses": responses, "requestState": STATE}, b"{}")
    assert machine.state is OperationState.WORKING
    assert arrive(machine, {"x": 1}) == Completed.of({"status": 200, "x": 1})


def test_each_round_answers_its_own_result_and_nothing_of_the_one_before() -> None:
    machine = begun()
    arrive(machine, asks(state="one", q=form()))
    machine.answered([fills("i", env="prod")])
    assert isinstance(arrive(machine, asks(q=form())), Ask)
    again = machine.answered([declines("j")])
    assert again == Send("tools/call", {**PARAMS, "inputResponses": {"q": {"action": "decline"}}}, b"{}")
    assert isinstance(arrive(machine, asks(state="three")), Wait)


def test_consent_comes_first_and_is_no_round() -> None:
    machine = operation(may_ask=True, needs_consent=True, request=REQUEST)
    machine.begin()
    assert machine.is_proposed
    assert machine.answered([ACCEPT]) == REQUEST
    asked = arrive(machine, asks(q=form()))
    assert isinstance(asked, Ask)
    assert not machine.is_proposed
    again: Any = machine.answered([ACCEPT])
    assert again.params["inputResponses"]["q"]["content"] == {"decision": "accept"}


def test_a_state_alone_is_answered_after_waits_that_double_to_a_second() -> None:
    machine = begun()
    waits: list[Any] = [arrive(machine, asks(state=str(number))) for number in range(7)]
    assert [wait.seconds for wait in waits] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert [wait.then.params for wait in waits] == [{**PARAMS, "requestState": str(n)} for n in range(7)]
    assert machine.state is OperationState.WORKING


def test_a_question_in_between_begins_the_waits_anew() -> None:
    machine = begun()
    arrive(machine, asks(state="s"))
    arrive(machine, asks(state="s"))
    arrive(machine, asks(q=form()))
    machine.answered([declines("i")])
    assert arrive(machine, asks(state="s")).seconds == 0.05


@pytest.mark.parametrize("value", [asks(q=form()), asks(state="s")], ids=["questions", "state"])
def test_the_eleventh_round_is_one_too_many(value: JsonObject) -> None:
    machine = begun()
    for _ in range(10):
        step = arrive(machine, value)
        assert isinstance(step, Ask | Wait)
        if isinstance(step, Ask):
            machine.answered([declines("i")])
    assert problem_of(arrive(machine, value)) == {
        "code": "input-rounds-exceeded",
        "outcome": "unknown",
        "server": "p",
        "rounds": 10,
    }
    assert machine.state is OperationState.FAILED


def test_the_tenth_answer_may_be_the_last() -> None:
    machine = begun()
    for _ in range(10):
        arrive(machine, asks(q=form()))
        machine.answered([declines("i")])
    assert isinstance(arrive(machine, {}), Completed)


@pytest.mark.parametrize(
    ("value", "code", "outcome"),
    [
        (asks(q={"method": "sampling/createMessage", "params": {}}), "input-unsupported", "rejected"),
        (asks(q=form(), r={"method": "roots/list"}), "input-unsupported", "rejected"),
        (asks(), "tool-result-invalid", "executed"),
    ],
)
def test_what_cannot_be_asked_ends_the_operation_before_anybody_is(
    value: JsonObject, code: str, outcome: str
) -> None:
    machine = begun()
    assert problem_of(arrive(machine, value)) == {"code": code, "outcome": outcome, "server": "p"}
    assert machine.state is OperationState.FAILED


def test_a_result_over_the_limit_asks_nobody() -> None:
    machine = begun()
    assert (
        problem_of(machine.arrived(Result({**asks(q=form()), "x": "x" * 1000}, 1101)))["code"]
        == "result-too-large"
    )


@pytest.mark.spec("problems")
def test_after_a_round_the_effect_is_never_called_not_sent() -> None:
    lost, unsent, refused, expired, cancelled = (begun() for _ in range(5))
    for machine in (lost, unsent, refused):
        arrive(machine, asks(q=form()))
        machine.answered([declines("i")])
    assert problem_of(lost.faulted(AnswerLost("x")))["outcome"] == "unknown"
    assert problem_of(unsent.faulted(RequestNotSent("x"))) == {
        "code": "server-unavailable",
        "outcome": "unknown",
        "server": "p",
        "transport": "stdio",
    }
    assert problem_of(refused.arrived(RemoteError(-32602, "no")))["outcome"] == "rejected"
    arrive(expired, asks(q=form()))
    assert problem_of(expired.expire("int-1")) == {
        "code": "interrupt-expired",
        "outcome": "unknown",
        "interrupt": "int-1",
    }
    arrive(cancelled, asks(q=form()))
    ended: Any = cancelled.cancel("workspace.mcp.cancel")
    assert isinstance(ended.problem, OperationCancelled)
    assert problem_of(ended)["outcome"] == "unknown"


@pytest.mark.spec("problems")
def test_a_proposal_that_expires_was_never_sent() -> None:
    machine = operation(needs_consent=True)
    machine.begin()
    assert problem_of(machine.expire("int-1"))["outcome"] == "not-sent"
