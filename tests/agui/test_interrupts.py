"""Open questions through the door: what a run ends with again, what a refused resume leaves open."""

from typing import Any

import pytest

from tests.support.agui_runs import LIST, code, interrupts_of, types
from tests.support.doors_house import call, doors_house

pytestmark = pytest.mark.spec("agui")


async def test_a_run_that_asks_for_nothing_ends_with_what_waits_on_its_thread() -> None:
    async with doors_house() as doors:
        asked = interrupts_of(await doors.run(call("deploy")))
        other = interrupts_of(await doors.run(call("deploy"), threadId="thread-2"))
        await doors.run(LIST)
        assert interrupts_of(await doors.run()) == asked
        assert interrupts_of(await doors.run(threadId="thread-2")) == other
        assert code(await doors.run(threadId="thread-3")) == "action-required"


async def test_a_run_that_asks_for_nothing_reminds_of_one_operation_at_a_time() -> None:
    async with doors_house() as doors:
        first = interrupts_of(await doors.run(call("deploy")))
        second = interrupts_of(await doors.run(call("deploy")))
        assert interrupts_of(await doors.run()) == first
        await doors.run(resume=[{"interruptId": first[0]["id"], "status": "cancelled"}])
        assert interrupts_of(await doors.run()) == second


@pytest.mark.parametrize(
    "payload, expected",
    [({"decision": "maybe"}, "answer-invalid"), (None, "answer-invalid"), ({}, "answer-invalid")],
)
async def test_a_resume_that_is_not_consumed_ends_in_a_run_error(payload: Any, expected: str) -> None:
    async with doors_house() as doors:
        (interrupt,) = interrupts_of(await doors.run(call("deploy")))
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
        events = await doors.run(resume=[entry])
        still = interrupts_of(await doors.run())
    assert types(events) == ["RUN_STARTED", "STATE_SNAPSHOT", "CUSTOM", "RUN_ERROR"]
    value, error = events[-2]["value"], events[-1]
    assert (value["kind"], value["ok"], value["problem"]["code"]) == ("workspace.mcp.call", False, expected)
    assert (error["code"], error["metadata"]) == (expected, {"plurnk": {"problem": value["problem"]}})
    assert value["problem"]["stage"] == "operation"
    assert [each["id"] for each in still] == [interrupt["id"]]


async def test_a_resume_whose_question_is_gone_ends_so_that_clients_forget_it() -> None:
    async with doors_house() as doors:
        events = await doors.run(resume=[{"interruptId": "int-unknown", "status": "cancelled"}])
    assert types(events)[-2:] == ["CUSTOM", "RUN_FINISHED"]
    assert code(events) == "interrupt-not-found"


async def test_an_action_and_a_resume_are_too_much_and_nothing_is_consumed() -> None:
    async with doors_house() as doors:
        (interrupt,) = interrupts_of(await doors.run(call("deploy")))
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"decision": "accept"}}
        events = await doors.run(LIST, resume=[entry])
        assert interrupts_of(await doors.run()) == [interrupt]
    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "parameter-invalid")
