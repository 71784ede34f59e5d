"""An operation whose request is refused for want of a sign-in: the request alone is sent again, twice at most."""

from typing import Any

import pytest

from app.core.answers import HttpRefusal, Result
from app.core.interrupts import ResumeEntry
from app.core.oauth_problems import OAuthMetadataInvalid
from app.core.operation import Operation
from app.core.operation_state import OperationState
from app.core.steps import Ask, Authorize, Completed, Send, SignIn
from tests.core.test_operation import REQUEST, operation, problem_of
from tests.support.deferring import TASK, completed, handle

pytestmark = pytest.mark.spec("calls", "oauth")

CHALLENGE = 'Bearer error="insufficient_scope", scope="a"'
CALLBACK = "http://127.0.0.1:7777/cb?code=c&state=s"
HANDED = ResumeEntry("int-1", "resolved", {"callbackUrl": CALLBACK})
AS = "https://as.example/authorize?state=s"
GOOD: Any = {"content": []}


def sent(**changes: Any) -> Operation:
    """Return an operation whose request is under way."""
    machine = operation(may_sign_in=True, may_defer=True, **changes)
    machine.begin()
    machine.dispatching(machine.work.request)
    return machine


def signed_in(machine: Operation, refusal: HttpRefusal) -> Any:
    """Have the request refused and a person sign in; return the step after that."""
    assert machine.arrived(refusal) == Authorize(refusal.bearer_challenge)
    assert isinstance(machine.begun(AS), Ask)
    assert (machine.state, machine.is_proposed) == (OperationState.INPUT_REQUIRED, False)
    assert machine.answered([HANDED]) == SignIn(CALLBACK)
    return machine.signed_in()


def test_a_refused_request_is_sent_again_after_the_sign_in() -> None:
    machine = sent()
    assert signed_in(machine, HttpRefusal(403, CHALLENGE)) == REQUEST
    machine.dispatching(REQUEST)
    assert machine.arrived(Result(GOOD, 9)) == Completed.of({"status": 200, **GOOD})


def test_where_no_person_can_sign_in_the_refusal_is_the_end() -> None:
    machine = operation()
    machine.begin()
    machine.dispatching(REQUEST)
    assert problem_of(machine.arrived(HttpRefusal(401)))["code"] == "remote-error"


def test_two_sign_ins_are_asked_for_and_no_third() -> None:
    machine = sent()
    for _ in range(2):
        assert signed_in(machine, HttpRefusal(401)) == REQUEST
    ending = problem_of(machine.arrived(HttpRefusal(401)))
    assert (ending["code"], ending["outcome"]) == ("authorization-refused", "rejected")


def test_who_does_not_sign_in_ends_the_operation() -> None:
    machine = sent()
    machine.arrived(HttpRefusal(401))
    machine.begun(AS)
    ending = problem_of(machine.answered([ResumeEntry("int-1", "cancelled")]))
    assert (ending["code"], ending["outcome"]) == ("authorization-refused", "rejected")


def test_a_callback_that_used_nothing_up_is_asked_for_again() -> None:
    machine = sent()
    machine.arrived(HttpRefusal(401))
    machine.begun(AS)
    machine.answered([HANDED])
    machine.asked_again()
    assert (machine.state, machine.is_signing_in) == (OperationState.INPUT_REQUIRED, True)
    assert machine.answered([HANDED]) == SignIn(CALLBACK)


def test_a_page_that_nobody_can_judge_ends_the_operation() -> None:
    machine = sent()
    machine.arrived(HttpRefusal(401))
    ending = problem_of(machine.begun("https://as.example@evil.example/"))
    assert (ending["code"], ending["outcome"]) == ("oauth-metadata-invalid", "rejected")


@pytest.mark.parametrize("end", ["time out", "expire", "refused"])
def test_the_end_of_an_unfinished_sign_in_knows_that_the_request_was_rejected(end: str) -> None:
    machine = sent()
    machine.arrived(HttpRefusal(401))
    machine.begun(AS)
    ending = {
        "time out": lambda: machine.time_out(1),
        "expire": lambda: machine.expire("int-1"),
        "refused": lambda: machine.refused(OAuthMetadataInvalid("p", "it has no token")),
    }[end]()
    assert problem_of(ending)["outcome"] == "rejected"


def polling() -> Operation:
    """Return an operation whose task is being polled."""
    machine = sent()
    machine.arrived(Result(handle(), 9))
    machine.dispatching(Send("tasks/get", {"taskId": TASK}))
    return machine


def test_a_refused_poll_is_sent_again_and_the_request_is_not() -> None:
    machine = polling()
    assert signed_in(machine, HttpRefusal(401)) == Send("tasks/get", {"taskId": TASK})
    machine.dispatching(Send("tasks/get", {"taskId": TASK}))
    assert isinstance(machine.arrived(Result(completed(), 9)), Completed)


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_task_that_ended_meanwhile_gives_its_result(*, is_answered: bool) -> None:
    machine = polling()
    machine.arrived(HttpRefusal(401))
    machine.begun(AS)
    machine.tell(Result(completed(), 9))
    if is_answered:
        machine.answered([HANDED])
        step = machine.signed_in()
    else:
        step = machine.answered([ResumeEntry("int-1", "cancelled")])
    assert isinstance(step, Completed)


def test_a_refused_poll_says_nothing_of_the_call() -> None:
    machine = polling()
    machine.arrived(HttpRefusal(401))
    machine.begun(AS)
    ending = problem_of(machine.answered([ResumeEntry("int-1", "cancelled")]))
    assert (ending["code"], ending["outcome"]) == ("authorization-refused", "unknown")


def test_a_sign_in_of_what_was_not_refused_is_a_bug_of_ours() -> None:
    machine = operation()
    machine.begin()
    with pytest.raises(ValueError, match="sent nothing"):
        machine.signed_in()
