"""Which answers an open operation takes."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from app.core.events import Interrupt
from app.core.interrupts import ResumeEntry
from app.core.operation import Operation, Send, Work
from app.core.operation_problems import AnswerInvalid, InterruptConflict
from app.core.proposals import DECISION_SCHEMA
from app.operations.open_operation import OpenOperation, new_operation_id

YES: Any = {"decision": "accept"}


def asked(*interrupts: str) -> OpenOperation:
    work = Work("k", "p", "stdio", Send("m", {}), lambda value: value, 10)
    operation = OpenOperation(
        "op-1", Operation("op-1", work), thread_id=None, deadline=0, admit=lambda _: None
    )
    operation.questions = {
        each: Interrupt(each, "op-1", "tool_call", "?", "2026-11-30T11:45:19Z", DECISION_SCHEMA, {})
        for each in interrupts
    }
    return operation


def entry(interrupt: str, payload: Any = YES) -> ResumeEntry:
    return ResumeEntry(interrupt, "resolved", payload)


@pytest.mark.spec("calls")
def test_new_answers_are_told_from_repeated_ones() -> None:
    operation = asked("a", "b")
    fresh = operation.new_answers({"b": entry("b")})
    operation.stage(fresh)
    assert [each.id for each in operation.open_interrupts] == ["a"]
    assert operation.new_answers({"a": entry("a"), "b": entry("b")}) == {"a": entry("a")}
    operation.stage({"a": entry("a")})
    assert operation.answered_set == [entry("a"), entry("b")]
    assert operation.open_interrupts == ()


@pytest.mark.spec("calls")
def test_nothing_is_taken_where_one_conflicts_or_does_not_fit() -> None:
    operation = asked("a", "b")
    operation.stage({"a": entry("a")})
    with pytest.raises(InterruptConflict):
        operation.new_answers({"b": entry("b"), "a": entry("a", {"decision": "reject"})})
    with pytest.raises(AnswerInvalid):
        operation.new_answers({"b": entry("b", 1)})
    assert list(operation.staged) == ["a"]


def test_releasing_lets_go_of_everything_once() -> None:
    released: list[str] = []
    operation = asked()

    @contextmanager
    def use() -> Generator[None]:
        yield
        released.append("workspace")

    operation.release()
    operation.hold(use())
    operation.hold(use())
    assert released == []
    operation.release()
    operation.release()
    assert released == ["workspace"]


def test_ids_are_random_text_of_which_no_two_are_the_same() -> None:
    ids = [new_operation_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(re.fullmatch("op-[0-9a-f]{32}", each) for each in ids)
    assert all(len({each[place] for each in ids}) == 16 for place in range(3, 35))
