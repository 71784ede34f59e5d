"""How a run of an action ends. SPEC §agui."""

from collections.abc import Iterator
from typing import Any

import pytest

from app.cli.conversation import Answered, Asked, ending_of
from app.cli.failures import AnswerLost, CommandFailure, ProblemAnswer, RunCancelled
from app.core.json_value import JsonObject

RESULT: JsonObject = {"status": 200, "operation": "op-1", "isError": False, "content": []}
PROBLEM: JsonObject = {"code": "tool-not-found", "status": 404, "detail": "No such tool."}
STARTED: JsonObject = {"type": "RUN_STARTED"}


def finished(**members: Any) -> JsonObject:
    return {"type": "RUN_FINISHED", "threadId": "t", "runId": "r", **members}


def ending(*events: JsonObject) -> Answered | Asked:
    return ending_of(iter([STARTED, *events]), lambda _event: None)


@pytest.mark.spec("agui")
def test_a_result_is_the_answer() -> None:
    event = finished(result={"kind": "k", "ok": True, "result": RESULT}, outcome={"type": "success"})
    assert ending(event) == Answered(RESULT)


@pytest.mark.spec("agui")
def test_an_interrupt_is_a_question() -> None:
    interrupts: list[Any] = [{"id": "i-1"}, {"id": "i-2"}]
    assert ending(finished(outcome={"type": "interrupt", "interrupts": interrupts})) == Asked(interrupts)


@pytest.mark.spec("agui")
@pytest.mark.parametrize(
    "events, failure",
    [
        ([finished(result={"kind": "k", "ok": False, "problem": PROBLEM})], ProblemAnswer),
        (
            [{"type": "RUN_ERROR", "message": "x", "metadata": {"plurnk": {"problem": PROBLEM}}}],
            ProblemAnswer,
        ),
        ([{"type": "RUN_ERROR", "message": "x", "code": "y"}], ProblemAnswer),
        ([finished(outcome={"type": "cancelled"})], RunCancelled),
        ([], AnswerLost),
    ],
    ids=["problem", "error", "bare error", "cancelled", "cut"],
)
def test_anything_else_is_a_failure(events: list[JsonObject], failure: type[CommandFailure]) -> None:
    with pytest.raises(failure):
        ending(*events)


def test_a_run_error_shows_the_problem_it_carries() -> None:
    with pytest.raises(ProblemAnswer) as failed:
        ending({"type": "RUN_ERROR", "message": "x", "metadata": {"plurnk": {"problem": PROBLEM}}})
    assert failed.value.problem == PROBLEM


def test_nothing_is_read_after_the_end() -> None:
    def events() -> Iterator[JsonObject]:
        yield finished(result={"kind": "k", "ok": True, "result": RESULT})
        raise AssertionError("the run is over")

    seen: list[JsonObject] = []
    assert ending_of(events(), seen.append) == Answered(RESULT)
    assert [event["type"] for event in seen] == ["RUN_FINISHED"]
