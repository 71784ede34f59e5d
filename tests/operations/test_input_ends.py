"""Operations that wait for input or wait to go on: every way in which that ends."""

from typing import Any

import anyio
import pytest

from app.core.answers import RequestNotSent
from app.core.operation_problems import (
    InterruptExpired,
    InterruptNotFound,
    OperationCancelled,
    OperationTimeout,
)
from app.core.problem import Outcome
from app.core.problems import ServerBusy, ServerUnavailable
from app.operations.board import Settled
from app.operations.tool_call import call
from tests.support.board_house import NOTHING, RESULT, answering, ask, left, outcome_of, peers, resume
from tests.support.eliciting import asks, fills, form
from tests.support.operations_house import OperationsHouse

pytestmark = pytest.mark.spec("calls")

PARAMS: dict[str, Any] = {"name": "get", "arguments": {"x": None}}


def sent(house: OperationsHouse) -> list[dict[str, Any]]:
    """Return what every request but the first had beside the parameters of the first."""
    again: list[dict[str, Any]] = []
    for request in house.peer.requests[1:]:
        assert request.method == "tools/call"
        assert {**request.params, **PARAMS} == request.params
        again.append({name: value for name, value in request.params.items() if name not in PARAMS})
    return again


async def test_a_client_that_leaves_during_the_retry_cancels_it() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        (interrupt,) = (await ask(house, asks(q=form()))).interrupts
        house.peer.automatic = lambda _: None
        scope = anyio.CancelScope()

        async def client() -> None:
            with scope:
                await resume(house, fills(interrupt.id, env="prod"))

        group.start_soon(client)
        await house.peer.next_request()
        request = await house.peer.next_request()
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert request.is_cancelled
        with pytest.raises(OperationCancelled) as raised:
            await resume(house, fills(interrupt.id, env="prod"))
        assert raised.value.outcome is Outcome.UNKNOWN
        assert left(house) == NOTHING


async def test_a_question_waits_as_long_as_its_operation_may_take_and_then_expires() -> None:
    async with peers(PLURNK_PROPOSAL_TIMEOUT="1", PLURNK_MCP_REQUEST_TIMEOUT="400") as house:
        waiting = await ask(house, asks(q=form()))
        (operation,) = house.board._open.all()
        assert operation.due == operation.deadline
        gone = anyio.Event()
        house.workspace.state.subscribe(lambda _: gone.set())
        with anyio.fail_after(5):
            await gone.wait()
        with pytest.raises(InterruptExpired) as expired:
            await resume(house, fills(waiting.interrupts[0].id, env="prod"))
        with pytest.raises(OperationTimeout) as late:
            house.board.result_of(waiting.operation)
        assert (expired.value.outcome, late.value.outcome) == (Outcome.UNKNOWN, Outcome.UNKNOWN)
        assert len(house.peer.requests) == 1
        assert left(house) == NOTHING


@pytest.mark.spec("lifecycle")
async def test_a_server_is_busy_while_a_person_thinks_until_the_operation_is_cancelled() -> None:
    async with peers() as house:
        waiting = await ask(house, asks(q=form()))
        with pytest.raises(ServerBusy) as busy:
            await house.detach("p")
        assert busy.value.facts["operations"] == [waiting.operation]
        house.board.cancel(waiting.operation)
        assert left(house) == NOTHING
        with pytest.raises(OperationCancelled):
            await resume(house, fills(waiting.interrupts[0].id, env="prod"))
        await house.detach("p")


async def test_a_daemon_that_goes_down_ends_what_a_person_thinks_about() -> None:
    async with peers() as house:
        waiting = await ask(house, asks(q=form()))
        house.boards.shut_down()
        assert left(house) == NOTHING
        with pytest.raises(InterruptNotFound):
            await resume(house, fills(waiting.interrupts[0].id, env="prod"))


async def test_a_state_alone_is_sent_again_by_itself_after_a_wait() -> None:
    async with peers() as house:
        began = anyio.current_time()
        answering(house, asks(state="1"), asks(state=""), RESULT)
        ended = await call(house.board, "p", "get", {"x": None}, observe=house.events.append)
        assert isinstance(ended, Settled)
        assert anyio.current_time() - began > 0.14
        assert sent(house) == [{"requestState": "1"}, {"requestState": ""}]
        assert left(house) == NOTHING


@pytest.mark.parametrize("way", ["cancel", "deadline", "disconnect", "shutdown"])
async def test_whatever_ends_the_wait_ends_the_operation(way: str) -> None:
    timeout = "30" if way == "deadline" else "60000"
    async with peers(PLURNK_MCP_REQUEST_TIMEOUT=timeout) as house, anyio.create_task_group() as group:
        ends: list[Any] = []
        scope = anyio.CancelScope()

        async def client() -> None:
            with scope:
                ends.append(await outcome_of(lambda: ask(house, asks(state="s"))))

        group.start_soon(client)
        await house.peer.next_request()
        await anyio.wait_all_tasks_blocked()
        (operation,) = house.board._open.all()
        match way:
            case "cancel":
                house.board.cancel(operation.id)
            case "disconnect":
                scope.cancel()
            case "shutdown":
                house.boards.shut_down()
            case _:
                await anyio.sleep(0.04)
        await anyio.wait_all_tasks_blocked()
        if way != "disconnect":
            assert isinstance(ends[0], OperationTimeout if way == "deadline" else OperationCancelled)
        assert len(house.peer.requests) == 1
        assert left(house) == NOTHING


@pytest.mark.spec("problems")
async def test_a_server_that_died_meanwhile_leaves_the_effect_unknown() -> None:
    async with peers() as house:
        (interrupt,) = (await ask(house, asks(q=form()))).interrupts
        house.peer.automatic = lambda _: RequestNotSent("no child")
        with pytest.raises(ServerUnavailable) as raised:
            await resume(house, fills(interrupt.id, env="prod"))
        assert raised.value.outcome is Outcome.UNKNOWN
