"""Runs of calls that became tasks: one operation, its questions and its one end, as SPEC §agui gives them."""

from typing import Any

import pytest

from tests.support.agui_runs import answered_run, code, interrupts_of, types
from tests.support.deferring import completed, failed, handle, state, wants
from tests.support.doors_house import call, doors_house, text_result
from tests.support.eliciting import form, link

pytestmark = [pytest.mark.spec("agui"), pytest.mark.spec("calls")]


async def test_a_task_that_asks_ends_its_run_and_the_answer_brings_the_result() -> None:
    async with doors_house() as doors:
        asked = await answered_run(doors, call(), handle(), state("working"), wants(a=form(), b=link()))
        one, two = interrupts_of(asked)
        assert types(asked)[2:5] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"]
        assert {each["reason"] for each in (one, two)} == {"input_required"}
        assert interrupts_of(await doors.run()) == [one, two]
        entries: list[Any] = [
            {"interruptId": one["id"], "status": "resolved", "payload": {"env": "prod"}},
            {"interruptId": two["id"], "status": "cancelled", "metadata": {"plurnk": {"action": "decline"}}},
        ]
        ended = await answered_run(
            doors, None, {}, completed(text_result("deployed")), resume=entries, threadId="thread-2"
        )
        update = doors.peer.requests[3]
    assert (update.method, update.params["inputResponses"]) == (
        "tasks/update",
        {"a": {"action": "accept", "content": {"env": "prod"}}, "b": {"action": "decline"}},
    )
    assert ended[-1]["outcome"] == {"type": "success"}
    assert [event["content"] for event in ended if event["type"] == "TOOL_CALL_RESULT"] == ["deployed"]
    assert ended[-1]["result"]["result"]["toolCallId"] == one["toolCallId"]


@pytest.mark.parametrize(
    ("end", "problem", "outcome"),
    [
        (failed(-32000, "boom"), "remote-error", "success"),
        (state("cancelled"), "operation-cancelled", "cancelled"),
    ],
    ids=["failed", "cancelled"],
)
async def test_a_task_that_has_no_result_ends_its_run_in_a_problem(
    end: Any, problem: str, outcome: str
) -> None:
    async with doors_house() as doors:
        events = await answered_run(doors, call(), handle(), end)
    assert (code(events), events[-1]["outcome"]) == (problem, {"type": outcome})
