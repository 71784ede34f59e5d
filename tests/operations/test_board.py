"""Who may answer, cancel and look up what: resumes, replays, conflicts, races, and what each leaves behind."""

from collections.abc import Awaitable, Callable
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
    InterruptExpired,
    InterruptNotFound,
    OperationCancelled,
    OperationNotFound,
    OperationTimeout,
    ResumeIncomplete,
    ToolCallFailed,
)
from app.core.problem import Outcome, Problem
from app.core.problems import ShuttingDown, TooMany
from app.core.proposals import DECISION_SCHEMA
from app.operations.board import Board, Settled, StillOpen, Waiting, Working
from app.operations.tool_call import call
from tests.support.gated_connection import catalog, tool_entry
from tests.support.operations_house import OperationsHouse, operations_house

CATALOG = catalog([tool_entry("get"), tool_entry("put")])
RESULT: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}


def peers(*, kept_s: float = 600.0, **settings: str) -> Any:
    return operations_house(
        {"p": CATALOG}, definitions={"p": {"read": ["get"]}}, environment=settings, kept_s=kept_s
    )


async def propose(house: OperationsHouse, thread: str | None = None) -> tuple[str, str]:
    """Begin a call that waits for consent; return the operation and its interrupt."""
    waiting = await call(house.board, "p", "put", {}, observe=house.events.append, thread_id=thread)
    assert isinstance(waiting, Waiting)
    return waiting.operation, waiting.interrupts[0].id


def accepts(interrupt: str) -> ResumeEntry:
    return ResumeEntry(interrupt, "resolved", {"decision": "accept"})


def rejects(interrupt: str) -> ResumeEntry:
    return ResumeEntry(interrupt, "resolved", {"decision": "reject"})


async def resume(house: OperationsHouse, *entries: ResumeEntry, observe: Any = None) -> Any:
    return await house.board.resume(entries, observe=observe or house.events.append)


async def outcome_of(work: Callable[[], Awaitable[Any]]) -> Any:
    """Return what the work returns, or the Problem it raises."""
    try:
        return await work()
    except Problem as problem:
        return problem


def left(house: OperationsHouse) -> tuple[Any, ...]:
    """Return everything an operation could leave behind, with the count of the whole daemon."""
    return (
        house.leases(),
        house.state("operations"),
        house.state("interactions"),
        house.boards.open_count,
        house.board.open_interrupts(),
        house.workspace.idle_ms() > 0,
    )


NOTHING = ((), {}, {}, 0, (), True)


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
        assert (house.state("operations"), house.state("interactions"), house.board.open_interrupts()) == before
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


@pytest.mark.spec("calls")
async def test_an_unanswered_proposal_expires_and_leaves_the_state() -> None:
    async with peers(PLURNK_PROPOSAL_TIMEOUT="50") as house:
        operation, interrupt = await propose(house)
        gone = anyio.Event()
        house.workspace.state.subscribe(lambda _: gone.set())
        with anyio.fail_after(5):
            await gone.wait()
        assert left(house) == NOTHING
        for entry in (accepts(interrupt), rejects(interrupt)):
            with pytest.raises(InterruptExpired):
                await resume(house, entry)
        with pytest.raises(InterruptExpired) as raised:
            house.board.result_of(operation)
        assert raised.value.outcome is Outcome.NOT_SENT
        assert house.peer.requests == []


@pytest.mark.spec("calls")
async def test_the_deadline_of_the_operation_includes_the_waiting_for_a_person() -> None:
    async with peers(PLURNK_MCP_REQUEST_TIMEOUT="50") as house:
        operation, interrupt = await propose(house)
        gone = anyio.Event()
        house.workspace.state.subscribe(lambda _: gone.set())
        with anyio.fail_after(5):
            await gone.wait()
        with pytest.raises(InterruptExpired):
            await resume(house, accepts(interrupt))
        with pytest.raises(OperationTimeout) as raised:
            house.board.result_of(operation)
        assert (raised.value.facts["timeoutMs"], raised.value.outcome) == (50, Outcome.NOT_SENT)


@pytest.mark.spec("calls")
async def test_an_answer_after_the_time_but_before_the_timer_is_too_late() -> None:
    async with peers() as house:
        _, interrupt = await propose(house)
        operation = house.board._open.all()[0]
        operation.due = anyio.current_time()
        with pytest.raises(InterruptExpired):
            await resume(house, accepts(interrupt))
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
async def test_a_running_operation_times_out_and_its_peer_is_told() -> None:
    async with peers(PLURNK_MCP_REQUEST_TIMEOUT="50") as house:
        with pytest.raises(OperationTimeout) as raised:
            await call(house.board, "p", "get", {}, observe=house.events.append)
        assert (raised.value.facts["timeoutMs"], raised.value.outcome) == (50, Outcome.UNKNOWN)
        assert house.peer.requests[0].is_cancelled
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
async def test_a_slow_call_does_not_hold_up_another_on_the_same_connection() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        ended: list[Any] = []

        async def caller() -> None:
            ended.append(await outcome_of(lambda: call(house.board, "p", "get", {}, observe=lambda _: None)))

        group.start_soon(caller)
        slow = await house.peer.next_request()
        house.peer.automatic = lambda request: request.result(RESULT)
        fast = await call(house.board, "p", "get", {}, observe=lambda _: None)
        assert isinstance(fast, Settled)
        assert ended == []
        slow.result(RESULT)
        await anyio.wait_all_tasks_blocked()
        assert len(ended) == 1


@pytest.mark.spec("calls")
async def test_cancelling_a_running_operation_stops_its_request_and_ends_its_run() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        ended: list[Any] = []

        async def caller() -> None:
            ended.append(await outcome_of(lambda: call(house.board, "p", "get", {}, observe=house.events.append)))

        group.start_soon(caller)
        request = await house.peer.next_request()
        (operation,) = house.state("operations")
        assert house.board.result_of(operation) == Working(operation, "workspace.mcp.call")
        house.board.cancel(operation)
        house.board.cancel(operation)
        request.result(RESULT)
        await anyio.wait_all_tasks_blocked()
        (problem,) = ended
        assert isinstance(problem, OperationCancelled)
        assert problem.facts == {"operation": operation, "by": "workspace.mcp.cancel"}
        assert problem.outcome is Outcome.UNKNOWN
        with pytest.raises(OperationCancelled):
            house.board.result_of(operation)
        assert not [event for event in house.events if isinstance(event, ToolCallEnded)]
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
async def test_an_answer_that_crosses_the_cancel_is_dropped() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        ended: list[Any] = []

        async def caller() -> None:
            ended.append(await outcome_of(lambda: call(house.board, "p", "get", {}, observe=house.events.append)))

        group.start_soon(caller)
        request = await house.peer.next_request()
        (operation,) = house.state("operations")
        request.result(RESULT)
        house.board.cancel(operation)
        await anyio.wait_all_tasks_blocked()
        assert isinstance(ended[0], OperationCancelled)
        with pytest.raises(OperationCancelled):
            house.board.result_of(operation)
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
async def test_cancelling_a_waiting_operation_drops_its_interrupts() -> None:
    async with peers() as house:
        operation, interrupt = await propose(house)
        house.board.cancel(operation)
        assert left(house) == NOTHING
        with pytest.raises(OperationCancelled) as raised:
            await resume(house, accepts(interrupt))
        assert raised.value.outcome is Outcome.NOT_SENT


@pytest.mark.spec("problems")
async def test_what_ended_otherwise_or_never_was_cannot_be_cancelled() -> None:
    async with peers() as house:
        house.peer.automatic = lambda request: request.result(RESULT)
        ended = await call(house.board, "p", "get", {}, observe=lambda _: None)
        assert isinstance(ended, Settled)
        for operation in (ended.operation, "op-unknown"):
            with pytest.raises(OperationNotFound):
                house.board.cancel(operation)


@pytest.mark.spec("calls")
async def test_a_client_that_disconnects_cancels_what_runs_for_it() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        scope = anyio.CancelScope()

        async def caller() -> None:
            with scope:
                await call(house.board, "p", "get", {}, observe=house.events.append)

        group.start_soon(caller)
        request = await house.peer.next_request()
        (operation,) = house.state("operations")
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert request.is_cancelled
        with pytest.raises(OperationCancelled) as raised:
            house.board.result_of(operation)
        assert raised.value.facts == {"operation": operation, "by": "disconnect"}
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
async def test_a_client_that_disconnects_leaves_a_waiting_operation_alone() -> None:
    async with peers() as house:
        with anyio.CancelScope() as scope:
            operation, interrupt = await propose(house)
            scope.cancel()
        assert [each.id for each in house.board.open_interrupts()] == [interrupt]
        assert house.board.result_of(operation) == Waiting(
            operation, "workspace.mcp.call", house.board.open_interrupts()
        )


@pytest.mark.spec("calls")
async def test_an_observer_that_fails_ends_the_operation_as_a_bug_of_ours() -> None:
    def broken(_: RunEvent) -> None:
        raise RuntimeError("the stream is gone")

    async with peers() as house:
        with pytest.raises(RuntimeError, match="the stream is gone"):
            await call(house.board, "p", "get", {}, observe=broken)
        assert left(house) == NOTHING


@pytest.mark.spec("limits")
async def test_a_workspace_has_at_most_so_many_operations_and_a_waiting_one_counts() -> None:
    async with peers(PLURNK_MAX_WORKSPACE_OPERATIONS="2") as house:
        operation, _ = await propose(house)
        await propose(house)
        with pytest.raises(TooMany) as raised:
            await propose(house)
        assert raised.value.facts == {"limit": 2, "setting": "PLURNK_MAX_WORKSPACE_OPERATIONS"}
        house.board.cancel(operation)
        await propose(house)


@pytest.mark.spec("limits")
async def test_the_daemon_has_at_most_so_many_operations() -> None:
    async with peers(PLURNK_MAX_OPERATIONS="1") as house:
        operation, _ = await propose(house)
        other = house.boards.of(house.manager.workspace("other"))
        with pytest.raises(TooMany) as raised:
            await call(other, "p", "put", {}, observe=lambda _: None)
        assert raised.value.facts == {"limit": 1, "setting": "PLURNK_MAX_OPERATIONS"}
        house.board.cancel(operation)
        assert isinstance(await call(other, "p", "put", {}, observe=lambda _: None), Waiting)


@pytest.mark.spec("shutdown")
async def test_shutdown_settles_what_runs_and_what_waits_and_begins_nothing() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        ended: list[Any] = []

        async def caller() -> None:
            ended.append(await outcome_of(lambda: call(house.board, "p", "get", {}, observe=house.events.append)))

        await propose(house)
        group.start_soon(caller)
        request = await house.peer.next_request()
        house.boards.shut_down()
        await anyio.wait_all_tasks_blocked()
        assert request.is_cancelled
        assert isinstance(ended[0], OperationCancelled)
        assert ended[0].facts["by"] == "shutdown"
        assert left(house) == NOTHING
        with pytest.raises(ShuttingDown):
            await propose(house)


@pytest.mark.spec("calls")
async def test_a_settled_operation_is_forgotten_after_its_time() -> None:
    async with peers(kept_s=0.05) as house:
        operation, interrupt = await propose(house)
        await resume(house, rejects(interrupt))
        assert isinstance(house.board.result_of(operation), Settled)
        with anyio.fail_after(5):
            while len(house.board._settled):
                await anyio.sleep(0.01)
        with pytest.raises(OperationNotFound):
            house.board.result_of(operation)
        with pytest.raises(InterruptNotFound):
            await resume(house, rejects(interrupt))


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
            Question("tool_call", message, DECISION_SCHEMA, {"operation": operation}) for message in ("one?", "two?")
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


async def test_boards_of_idle_workspaces_make_room() -> None:
    async with peers(PLURNK_MAX_WORKSPACES="3") as house:
        await propose(house)
        kept = house.board
        for name in ("a", "b"):
            house.boards.of(house.manager.workspace(name))
        names: list[Board] = [house.boards.of(house.workspace)]
        assert names == [kept]
        house.boards._boards["ghost"] = house.boards._boards.pop("a")
        house.boards.of(house.manager.workspace("a"))
        assert "ghost" not in house.boards._boards
        assert house.board is kept
