"""The machine of one operation: what each arrival makes of it."""

from collections.abc import Callable
from typing import Any

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
from app.core.interrupts import ResumeEntry
from app.core.json_value import JsonObject
from app.core.operation import (
    Ask,
    Completed,
    Failed,
    Operation,
    Send,
    Work,
)
from app.core.operation_problems import ResourceNotFound, ToolResultInvalid
from app.core.operation_state import OperationState
from app.core.problem import Outcome
from app.core.proposals import proposal
from tests.support.deferring import handle
from tests.support.eliciting import asks, form

S = OperationState
REQUEST = Send("tools/call", {"name": "t", "arguments": {}})
QUESTION = proposal(operation="op-1", server="p", tool="t", arguments={}, signature="{}")
REFUSED: JsonObject = {"status": 200, "operation": "op-1", "rejected": True}
ACCEPT = ResumeEntry("int-1", "resolved", {"decision": "accept"})


def interpret(value: JsonObject) -> JsonObject:
    return {"status": 200, **value}


def operation(*, needs_consent: bool = False, **changes: Any) -> Operation:
    work: dict[str, Any] = {
        "kind": "workspace.mcp.call",
        "server": "p",
        "transport": "stdio",
        "request": REQUEST,
        "interpret": interpret,
        "max_result": 1000,
        "consent": (QUESTION,) if needs_consent else (),
        "refused": REFUSED,
    }
    return Operation("op-1", Work(**(work | changes)))


def problem_of(ending: object) -> JsonObject:
    assert isinstance(ending, Failed)
    document = ending.problem.document()
    return {"code": document["code"], "outcome": str(ending.problem.outcome), **ending.problem.facts}


@pytest.mark.spec("policy")
def test_a_call_that_needs_no_consent_is_sent_at_once() -> None:
    machine = operation()
    assert machine.begin() == REQUEST
    assert machine.state is S.WORKING


@pytest.mark.spec("policy")
def test_a_call_that_needs_consent_asks_first_and_is_sent_once_accepted() -> None:
    machine = operation(needs_consent=True)
    assert machine.begin() == Ask((QUESTION,))
    assert machine.state is S.INPUT_REQUIRED
    assert machine.answered([ACCEPT]) == REQUEST
    assert machine.state is S.WORKING


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    "entry",
    [
        ResumeEntry("int-1", "resolved", {"decision": "reject"}),
        ResumeEntry("int-1", "cancelled"),
        ResumeEntry("int-1", "cancelled", {"decision": "accept"}),
        ResumeEntry("int-1", "resolved", None),
        ResumeEntry("int-1", "resolved", {"decision": True}),
        ResumeEntry("int-1", "resolved", ["accept"]),
    ],
    ids=["reject", "cancelled", "cancelled with an accept", "no payload", "not the word", "not an object"],
)
def test_anything_but_an_accept_completes_the_operation_as_rejected(entry: ResumeEntry) -> None:
    machine = operation(needs_consent=True)
    machine.begin()
    assert machine.answered([entry]) == Completed.of(REFUSED)
    assert machine.state is S.COMPLETED


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    "result_type", [{}, {"resultType": None}, {"resultType": "complete"}], ids=["absent", "null", "complete"]
)
def test_a_complete_result_is_interpreted(result_type: JsonObject) -> None:
    machine = operation()
    machine.begin()
    ending = machine.arrived(Result({**result_type, "x": 1}, 20))
    assert ending == Completed.of({"status": 200, **result_type, "x": 1})


INVALID = {"code": "tool-result-invalid", "outcome": "executed", "server": "p"}


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        (Result({"resultType": "input_required", "requestState": "s"}, 9), INVALID),
        (Result(handle(), 9), INVALID),
        (Result({"resultType": ""}, 9), INVALID),
        (Result({"resultType": ["complete"]}, 9), INVALID),
        (
            Result({"x": "x" * 993}, 1001),
            {
                "code": "result-too-large",
                "outcome": "executed",
                "server": "p",
                "limit": 1000,
                "setting": "PLURNK_MAX_RESULT",
            },
        ),
        (
            RemoteError(-32602, "no", {"k": 1}, 400),
            {
                "code": "remote-error",
                "outcome": "rejected",
                "server": "p",
                "remote": {"code": -32602, "message": "no", "data": {"k": 1}},
            },
        ),
        (
            HttpRefusal(503),
            {"code": "remote-error", "outcome": "rejected", "server": "p", "remote": {"httpStatus": 503}},
        ),
    ],
    ids=["input of a method that may not ask", "task", "null type", "odd type", "large", "error", "http"],
)
def test_what_the_peer_answers_is_told_apart(answer: Answer, facts: JsonObject) -> None:
    machine = operation()
    machine.begin()
    machine.dispatching(machine.work.request)
    assert problem_of(machine.arrived(answer)) == facts
    assert machine.state is S.FAILED


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    ("fault", "facts"),
    [
        (
            RequestNotSent("no child"),
            {"code": "server-unavailable", "outcome": "not-sent", "transport": "stdio"},
        ),
        (AnswerLost("it died"), {"code": "tool-call-failed", "outcome": "unknown"}),
        (AnswerMalformed("not JSON"), {"code": "tool-call-failed", "outcome": "unknown"}),
        (
            AnswerTooLarge(77),
            {"code": "result-too-large", "outcome": "executed", "limit": 77, "setting": "PLURNK_MAX_MESSAGE"},
        ),
    ],
    ids=["not sent", "lost", "malformed", "too large"],
)
def test_a_request_without_an_answer_says_what_is_known_of_its_effect(
    fault: RequestFault, facts: JsonObject
) -> None:
    machine = operation()
    machine.begin()
    machine.dispatching(machine.work.request)
    assert problem_of(machine.faulted(fault)) == {"server": "p", **facts}


@pytest.mark.spec("addresses")
def test_a_code_with_a_problem_of_its_own_is_that_problem() -> None:
    machine = operation(refusals={-32002: lambda: ResourceNotFound("p", outcome=Outcome.REJECTED)})
    machine.begin()
    assert problem_of(machine.arrived(RemoteError(-32002, "gone"))) == {
        "code": "resource-not-found",
        "outcome": "rejected",
        "server": "p",
    }


@pytest.mark.spec("calls")
def test_a_result_that_cannot_be_interpreted_fails_the_operation() -> None:
    def refuse(_: JsonObject) -> JsonObject:
        raise ToolResultInvalid("p", "of its form")

    machine = operation(interpret=refuse)
    machine.begin()
    assert problem_of(machine.arrived(Result({}, 2))) == INVALID


@pytest.mark.spec("problems")
@pytest.mark.parametrize("is_dispatched", [True, False])
def test_cancelling_and_timing_out_know_whether_anything_was_sent(*, is_dispatched: bool) -> None:
    outcome = "unknown" if is_dispatched else "not-sent"
    cancelled, late = operation(), operation()
    for machine in (cancelled, late):
        machine.begin()
        if is_dispatched:
            machine.dispatching(machine.work.request)
    assert problem_of(cancelled.cancel("disconnect")) == {
        "code": "operation-cancelled",
        "outcome": outcome,
        "operation": "op-1",
        "by": "disconnect",
    }
    assert cancelled.state is S.CANCELLED
    assert problem_of(late.time_out(5)) == {
        "code": "operation-timeout",
        "outcome": outcome,
        "server": "p",
        "timeoutMs": 5,
    }
    assert late.state is S.FAILED


def test_answers_to_a_question_that_is_not_open_are_a_bug_of_ours() -> None:
    machine = operation()
    machine.begin()
    with pytest.raises(ValueError, match="cannot happen"):
        machine.answered([ACCEPT])


ENDINGS = st.sampled_from(
    ["result", "error", "fault", "cancel", "time out", "expire", "form", "state", "nothing"]
)


@pytest.mark.spec("calls")
@given(
    arrivals=st.lists(ENDINGS, min_size=1, max_size=30), may_ask=st.booleans(), needs_consent=st.booleans()
)
def test_the_first_end_stands_whatever_arrives_after_it(
    arrivals: list[str], *, may_ask: bool, needs_consent: bool
) -> None:
    machine = operation(may_ask=may_ask, needs_consent=needs_consent)
    step: object = machine.begin()
    ends: list[object] = []
    for arrival in arrivals:
        if isinstance(step, Ask) and arrival not in {"cancel", "time out", "expire"}:
            step = machine.answered([ACCEPT] * len(step.questions))
            continue
        step = _arrive(machine, arrival)
        if machine.is_ended:
            ends.append(step)
    assert all(end is ends[0] for end in ends)
    assert machine.ending is (ends[0] if ends else None)
    assert machine.is_ended is bool(ends)


def _arrive(machine: Operation, arrival: str) -> object:
    simple: dict[str, Callable[[], object]] = {
        "error": lambda: machine.arrived(RemoteError(1, "no")),
        "fault": lambda: machine.faulted(AnswerLost("gone")),
        "cancel": lambda: machine.cancel("shutdown"),
        "time out": lambda: machine.time_out(1),
        "expire": lambda: machine.expire("int-1"),
    }
    results: dict[str, JsonObject] = {
        "result": {},
        "form": asks(q=form()),
        "state": asks(state="s"),
        "nothing": asks(),
    }
    return simple[arrival]() if arrival in simple else machine.arrived(Result(results[arrival], 2))
