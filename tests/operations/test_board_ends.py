"""How operations end without a peer's answer: expiry, deadline, cancel, disconnect, shutdown, limits."""

import time
from typing import Any

import anyio
import pytest

from app.core.events import RunEvent, ToolCallEnded
from app.core.operation_problems import (
    InterruptExpired,
    InterruptNotFound,
    OperationCancelled,
    OperationNotFound,
    OperationTimeout,
)
from app.core.problem import Outcome
from app.core.problems import ShuttingDown, TooMany
from app.operations.board import Settled, Waiting, Working
from app.operations.tool_call import call
from tests.support.board_house import (
    NOTHING,
    RESULT,
    accepts,
    ended,
    left,
    outcome_of,
    peers,
    propose,
    rejects,
    resume,
)


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
        operation.due = time.monotonic()
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
            ended.append(
                await outcome_of(lambda: call(house.board, "p", "get", {}, observe=house.events.append))
            )

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
            ended.append(
                await outcome_of(lambda: call(house.board, "p", "get", {}, observe=house.events.append))
            )

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
        operation, interrupt = "", ""
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
            ended.append(
                await outcome_of(lambda: call(house.board, "p", "get", {}, observe=house.events.append))
            )

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


@pytest.mark.spec("limits", "calls")
async def test_a_workspace_that_makes_room_takes_with_it_what_was_kept() -> None:
    async with peers(PLURNK_MAX_WORKSPACES="2") as house:
        await propose(house)
        other = house.boards.of(house.manager.workspace("a"))
        other._settled.keep(ended())
        assert house.boards.is_kept(other.workspace)
        assert house.boards.of(house.manager.workspace("b")).is_empty
        assert (len(other._settled), other._settled._timer) == (0, None)
        assert sorted(house.boards._boards) == ["b", "w"]
