"""Answers to open questions: who may give them, replays, conflicts, races, and sets answered in parts."""

from typing import Any

import anyio
import pytest

from app.core.answers import AnswerLost
from app.core.events import RunEvent, ToolCallEnded
from app.core.interrupts import Question, ResumeEntry
from app.core.operation import Send, Work
from app.core.operation_problems import (
    AnswerInvalid,
    InterruptConflict,
    InterruptNotFound,
    OperationCancelled,
    OperationNotFound,
    ResumeIncomplete,
    ToolCallFailed,
)
from app.core.problem import Outcome
from app.core.proposals import DECISION_SCHEMA
from app.operations.board import Settled, StillOpen, Waiting
from app.operations.tool_call import call
from tests.support.board_house import (
    NOTHING,
    RESULT,
    accepts,
    left,
    outcome_of,
    peers,
    propose,
    rejects,
    resume,
)
from tests.support.operations_house import OperationsHouse


@pytest.mark.spec("calls")
async def test_any_client_of_the_workspace_may_answer() -> None:
    async with peers() as house:
        _, interrupt = await propose(house, "thread-1")
        house.peer.automatic = lambda request: request.result(RESULT)
        ended = await house.board.resume([accepts(interrupt)], observe=house.events.append, thread_id="other")
        assert isinstance(ended, Settled)
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
async def test_the_identical_resume_repeats_the_result_and_sends_nothing_again() -> None:
    async with peers() as house:
        operation, interrupt = await propose(house)
        house.peer.automatic = lambda request: request.result(RESULT)
        first = await resume(house, accepts(interrupt))
        again: list[RunEvent] = []
        assert await resume(house, accepts(interrupt), observe=again.append) == first
        assert house.board.result_of(operation) == first
        assert len(house.peer.requests) == 1
        assert [type(event) for event in again] == [ToolCallEnded]


@pytest.mark.spec("calls")
async def test_a_problem_is_repeated_too() -> None:
    async with peers() as house:
        operation, interrupt = await propose(house)
        house.peer.automatic = lambda _: AnswerLost("it died")
        documents: list[Any] = []
        for _ in range(3):
            with pytest.raises(ToolCallFailed) as raised:
                await resume(house, accepts(interrupt))
            documents.append(raised.value.document())
        with pytest.raises(ToolCallFailed) as looked_up:
            house.board.result_of(operation)
        assert documents == [looked_up.value.document()] * 3
        assert len(house.peer.requests) == 1


@pytest.mark.spec("calls")
@pytest.mark.parametrize("is_settled", [True, False])
async def test_a_different_answer_conflicts_and_the_first_one_stands(*, is_settled: bool) -> None:
    async with peers() as house, anyio.create_task_group() as group:
        _, interrupt = await propose(house)
        first: list[Any] = []

        async def winner() -> None:
            first.append(await outcome_of(lambda: resume(house, accepts(interrupt))))

        group.start_soon(winner)
        request = await house.peer.next_request()
        if is_settled:
            request.result(RESULT)
            await anyio.wait_all_tasks_blocked()
        for entry in (rejects(interrupt), ResumeEntry(interrupt, "cancelled")):
            with pytest.raises(InterruptConflict):
                await resume(house, entry)
        request.result(RESULT)
        await anyio.wait_all_tasks_blocked()
        assert isinstance(first[0], Settled)


@pytest.mark.spec("calls")
async def test_of_two_identical_answers_at_once_one_runs_and_both_get_its_result() -> None:
    async with peers() as house:
        _, interrupt = await propose(house)
        ended: list[Any] = []

        async def client() -> None:
            ended.append(await outcome_of(lambda: resume(house, accepts(interrupt))))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(client)
            request = await house.peer.next_request()
            await anyio.wait_all_tasks_blocked()
            assert ended == []
            request.result(RESULT)
        assert len(ended) == 3
        assert ended[1:] == [ended[0]] * 2
        assert isinstance(ended[0], Settled)
        assert len(house.peer.requests) == 1
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
async def test_an_accepted_proposal_cannot_expire_any_more() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        _, interrupt = await propose(house)
        (operation,) = house.board._open.all()
        timer = operation.timer
        group.start_soon(lambda: resume(house, accepts(interrupt)))
        request = await house.peer.next_request()
        assert timer is not None
        assert timer.cancelled()
        assert (operation.timer, operation.questions, operation.staged) == (None, {}, {})
        assert (house.board.open_interrupts(), house.state("interactions")) == ((), {})
        assert house.state("operations")[operation.id]["state"] == "working"
        request.result(RESULT)


@pytest.mark.spec("calls")
async def test_when_the_winner_disconnects_the_other_learns_that_it_was_cancelled() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        _, interrupt = await propose(house)
        scope, ended = anyio.CancelScope(), list[Any]()

        async def winner() -> None:
            with scope:
                await resume(house, accepts(interrupt))

        async def other() -> None:
            ended.append(await outcome_of(lambda: resume(house, accepts(interrupt))))

        group.start_soon(winner)
        request = await house.peer.next_request()
        group.start_soon(other)
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert request.is_cancelled
        (problem,) = ended
        assert isinstance(problem, OperationCancelled)
        assert (problem.facts["by"], problem.outcome) == ("disconnect", Outcome.UNKNOWN)
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
@pytest.mark.parametrize("payload", [None, {"decision": "perhaps"}, {"decision": "accept", "x": 1}, "accept"])
async def test_an_answer_that_does_not_fit_consumes_nothing(payload: Any) -> None:
    async with peers() as house:
        _, interrupt = await propose(house)
        before = (house.state("operations"), house.state("interactions"), house.board.open_interrupts())
        with pytest.raises(AnswerInvalid):
            await resume(house, ResumeEntry(interrupt, "resolved", payload))
        assert (
            house.state("operations"),
            house.state("interactions"),
            house.board.open_interrupts(),
        ) == before
        assert isinstance(await resume(house, rejects(interrupt)), Settled)


@pytest.mark.spec("calls")
async def test_a_resume_covers_exactly_one_operation() -> None:
    async with peers() as house:
        (_, one), (_, other) = await propose(house), await propose(house)
        for entries in ([accepts(one), accepts(other)], [], [accepts(one), accepts(one)]):
            with pytest.raises(ResumeIncomplete):
                await resume(house, *entries)
        with pytest.raises(InterruptNotFound) as raised:
            await resume(house, accepts(one), accepts("int-unknown"))
        assert raised.value.facts == {"interrupt": "int-unknown"}
        assert len(house.board.open_interrupts()) == 2
        assert house.peer.requests == []


@pytest.mark.spec("calls")
async def test_an_interrupt_of_another_workspace_is_unknown() -> None:
    async with peers() as house:
        _, interrupt = await propose(house)
        other = house.boards.of(house.manager.workspace("other"))
        with pytest.raises(InterruptNotFound):
            await other.resume([accepts(interrupt)], observe=house.events.append)
        with pytest.raises(OperationNotFound):
            other.cancel(house.board.open_interrupts()[0].operation)
        assert len(house.board.open_interrupts()) == 1


@pytest.mark.spec("agui")
async def test_open_interrupts_are_found_by_the_thread_they_were_begun_on() -> None:
    async with peers() as house:
        (_, one), (_, two), (_, three) = [await propose(house, name) for name in ("t-1", "t-2", "t-1")]
        assert [each.id for each in house.board.open_interrupts("t-1")] == [one, three]
        assert [each.id for each in house.board.open_interrupts()] == [one, two, three]
        assert house.board.open_interrupts("t-9") == ()


@pytest.mark.spec("agui")
async def test_an_interrupt_is_retired_only_by_its_own_resume_or_end() -> None:
    async with peers() as house:
        operation, interrupt = await propose(house, "t-1")
        house.peer.automatic = lambda request: request.result(RESULT)
        await call(house.board, "p", "get", {}, observe=house.events.append, thread_id="t-1")
        assert [each.id for each in house.board.open_interrupts("t-1")] == [interrupt]
        house.board.cancel(operation)
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
async def test_a_proposal_keeps_its_workspace_but_not_its_server_busy() -> None:
    async with peers() as house:
        await propose(house)
        assert house.workspace.idle_ms() == 0
        assert house.leases() == ()
        await house.detach("p")


@pytest.mark.spec("agui")
async def test_one_delta_opens_a_question_and_one_takes_it_away() -> None:
    async with peers() as house:
        deltas: list[Any] = []
        house.workspace.state.subscribe(deltas.append)
        operation, interrupt = await propose(house)
        await resume(house, rejects(interrupt))
        paths = [[(each["op"], each["path"]) for each in delta[:-1]] for delta in deltas]
        assert paths == [
            [("add", f"/plurnk/operations/{operation}")],
            [("add", f"/plurnk/operations/{operation}"), ("add", f"/plurnk/interactions/{interrupt}")],
            [("remove", f"/plurnk/interactions/{interrupt}"), ("remove", f"/plurnk/operations/{operation}")],
        ]


@pytest.mark.spec("agui")
async def test_rest_answers_settle_a_proposal_at_once() -> None:
    async with peers() as house:
        _, interrupt = await propose(house)
        ended = await house.board.answer(rejects(interrupt), observe=house.events.append)
        assert isinstance(ended, Settled)
        assert not isinstance(ended, StillOpen)
        assert await house.board.answer(rejects(interrupt), observe=house.events.append) == ended


def two_questions(operation: str) -> Work:
    """Return the work of an operation that puts two questions at once."""
    return Work(
        kind="workspace.mcp.call",
        server="p",
        transport="stdio",
        request=Send("tools/call", {"name": "put", "arguments": {}}),
        interpret=lambda _: {"status": 200},
        max_result=1000,
        tool="put",
        tool_call_id="call-1",
        consent=tuple(
            Question("tool_call", message, DECISION_SCHEMA, {"operation": operation})
            for message in ("one?", "two?")
        ),
        refused={"status": 200, "rejected": True},
    )


async def ask_twice(house: OperationsHouse) -> Waiting:
    waiting = await house.board.run(
        "op-two", two_questions("op-two"), admit=lambda _: None, observe=house.events.append
    )
    assert isinstance(waiting, Waiting)
    return waiting


@pytest.mark.spec("calls")
async def test_a_resume_answers_all_open_questions_of_its_operation_or_none() -> None:
    async with peers() as house:
        one, two = (await ask_twice(house)).interrupts
        with pytest.raises(ResumeIncomplete) as raised:
            await resume(house, accepts(one.id))
        assert raised.value.facts == {"missing": [two.id]}
        with pytest.raises(AnswerInvalid):
            await resume(house, accepts(one.id), ResumeEntry(two.id, "resolved", {}))
        assert house.board.open_interrupts() == (one, two)
        house.peer.automatic = lambda request: request.result({})
        ended = await resume(house, accepts(two.id), accepts(one.id))
        assert ended == Settled("op-two", "workspace.mcp.call", {"status": 200})
        assert await resume(house, accepts(one.id)) == ended
        assert left(house) == NOTHING


@pytest.mark.spec("agui")
async def test_rest_answers_are_taken_one_at_a_time_and_the_last_one_goes_on() -> None:
    async with peers() as house:
        one, two = (await ask_twice(house)).interrupts
        taken = await house.board.answer(accepts(two.id), observe=house.events.append)
        assert taken == StillOpen("op-two", "workspace.mcp.call", (one,))
        assert await house.board.answer(accepts(two.id), observe=house.events.append) == taken
        with pytest.raises(InterruptConflict):
            await house.board.answer(rejects(two.id), observe=house.events.append)
        assert list(house.state("interactions")) == [one.id]
        assert house.board.open_interrupts() == (one,)
        assert house.board.result_of("op-two") == Waiting("op-two", "workspace.mcp.call", (one,))
        house.peer.automatic = lambda request: request.result({})
        ended = await house.board.answer(accepts(one.id), observe=house.events.append)
        assert ended == Settled("op-two", "workspace.mcp.call", {"status": 200})
        assert left(house) == NOTHING


@pytest.mark.spec("agui")
async def test_a_resume_may_finish_what_rest_began() -> None:
    async with peers() as house:
        one, two = (await ask_twice(house)).interrupts
        await house.board.answer(accepts(one.id), observe=house.events.append)
        with pytest.raises(ResumeIncomplete):
            await resume(house, accepts(one.id))
        assert (await resume(house, rejects(two.id))).result == {"status": 200, "rejected": True}
        assert house.peer.requests == []
        assert left(house) == NOTHING
