"""Calls that become tasks: polled, asked about, cancelled at the server by whatever ends them, nothing left."""

from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.answers import Answer, AnswerLost, RemoteError, RequestFault, RequestNotSent, Result
from app.core.events import RunEvent
from app.core.operation_problems import (
    OperationCancelled,
    OperationTimeout,
    ToolCallFailed,
    ToolResultInvalid,
)
from app.core.problem import Outcome, Problem
from app.core.problems import ServerBusy
from app.operations.board import Settled, Waiting
from app.operations.open_operation import OpenOperation
from app.operations.reads import read
from app.operations.tool_call import call
from tests.support.board_house import (
    NOTHING,
    accepts,
    answering,
    ask,
    left,
    outcome_of,
    peers,
    propose,
    resume,
)
from tests.support.deferring import DONE, TASK, completed, handle, state, wants
from tests.support.eliciting import dismisses, fills, form, link
from tests.support.gated_connection import GatedRequest
from tests.support.operations_house import OperationsHouse

pytestmark = pytest.mark.spec("calls")

CANCEL = ("tasks/cancel", {"taskId": TASK})
GET = ("tasks/get", {"taskId": TASK})


def sent(house: OperationsHouse) -> list[tuple[str, Any]]:
    """Return what the peer was asked after the call itself."""
    return [(request.method, request.params) for request in house.peer.requests[1:]]


async def test_a_call_that_became_a_task_has_the_result_of_the_task_and_shows_no_progress_of_its_polls() -> (
    None
):
    async with peers() as house:
        answering(house, handle(), state("working"), completed())
        ended = await call(house.board, "p", "get", {}, observe=house.events.append)
        assert isinstance(ended, Settled)
        assert ended.result["content"] == DONE["content"]
        assert sent(house) == [GET, GET]
        assert [request.on_progress is None for request in house.peer.requests] == [False, True, True]
        assert left(house) == NOTHING


async def test_a_proposed_call_may_become_a_task() -> None:
    async with peers() as house:
        _, interrupt = await propose(house)
        answering(house, handle(), completed())
        assert isinstance(await resume(house, accepts(interrupt)), Settled)


async def test_a_result_that_breaks_the_output_schema_is_found_in_a_task_too() -> None:
    async with peers() as house:
        answering(house, handle(), completed({"content": 1}))
        with pytest.raises(ToolResultInvalid):
            await call(house.board, "p", "get", {}, observe=house.events.append)
        assert sent(house) == [GET]


async def test_what_a_task_wants_is_asked_and_answered_by_one_update() -> None:
    async with peers() as house:
        waiting = await ask(
            house,
            handle(),
            wants(a=form(), b=link()),
            {},
            wants(a=form(), b=link()),
            wants(c=form()),
            {},
            completed(),
        )
        assert house.leases() == (waiting.operation,)
        one, two = waiting.interrupts
        again = await resume(house, fills(one.id, env="prod"), dismisses(two.id))
        assert isinstance(again, Waiting)
        ended = await resume(house, dismisses(again.interrupts[0].id))
        assert isinstance(ended, Settled)
        responses = {"a": {"action": "accept", "content": {"env": "prod"}}, "b": {"action": "cancel"}}
        assert sent(house) == [
            GET,
            ("tasks/update", {"taskId": TASK, "inputResponses": responses}),
            GET,
            GET,
            ("tasks/update", {"taskId": TASK, "inputResponses": {"c": {"action": "cancel"}}}),
            GET,
        ]
        assert left(house) == NOTHING


@pytest.mark.parametrize("uri", ["p:///resources/a%3Ab", "p:///prompts/x"])
async def test_only_a_tool_call_may_become_a_task(uri: str) -> None:
    async with peers() as house:
        answering(house, handle())
        with pytest.raises(ToolResultInvalid):
            await read(house.board, uri, observe=house.events.append)
        assert sent(house) == []


def act(house: OperationsHouse, way: str, operation: str, client: anyio.CancelScope | None) -> None:
    """End the operation in this way; the client of one that waits for a person is gone already."""
    match way:
        case "disconnect" if client is not None:
            client.cancel()
        case "cancel" | "disconnect":
            house.board.cancel(operation)
        case "shutdown":
            house.boards.shut_down()
        case _:
            pass  # the deadline comes by itself


@pytest.mark.spec("shutdown", "lifecycle")
@pytest.mark.parametrize(
    "moment", ["before a poll", "during a poll", "during a question", "during an update"]
)
@pytest.mark.parametrize("way", ["cancel", "deadline", "disconnect", "shutdown"])
async def test_whatever_ends_the_operation_has_the_task_cancelled_once(moment: str, way: str) -> None:
    timeout = "700" if way == "deadline" else "60000"
    async with peers(PLURNK_MCP_REQUEST_TIMEOUT=timeout) as house, anyio.create_task_group() as group:
        answers = {
            "tools/call": Result(handle(pollIntervalMs=60_000 if moment == "before a poll" else 50), 9),
            "tasks/get": None if moment == "during a poll" else Result(wants(a=form()), 9),
            "tasks/cancel": Result({}, 9),
        }
        house.peer.automatic = lambda request: answers.get(request.method)
        scope = anyio.CancelScope()
        ends: list[Any] = []

        async def client() -> None:
            with scope:
                first = await outcome_of(
                    lambda: call(house.board, "p", "get", {}, observe=house.events.append)
                )
                if moment == "during an update":
                    first = await outcome_of(lambda: resume(house, dismisses(first.interrupts[0].id)))
                ends.append(first)

        group.start_soon(client)
        await house.peer.next_request()
        if moment != "before a poll":
            await house.peer.next_request()
        await anyio.wait_all_tasks_blocked()
        (operation,) = house.board._open.all()
        with pytest.raises(ServerBusy):
            await house.detach("p")
        act(house, way, operation.id, scope if moment != "during a question" else None)
        with anyio.fail_after(5):
            while house.board._open.all():
                await anyio.sleep(0.01)
            await house.boards.finish()
        assert sent(house)[-1] == CANCEL
        assert sent(house).count(CANCEL) == 1
        assert left(house) == NOTHING
        if way != "shutdown":
            with pytest.raises(Problem) as raised:
                house.board.result_of(operation.id)
            assert isinstance(raised.value, OperationTimeout if way == "deadline" else OperationCancelled)
            assert raised.value.outcome is Outcome.UNKNOWN


async def test_nobody_waits_for_a_server_that_does_not_acknowledge_the_cancel() -> None:
    async with peers() as house:
        waiting = await ask(house, handle(), wants(a=form()))
        house.peer.automatic = lambda _: None
        house.board.cancel(waiting.operation)
        assert left(house) == NOTHING
        await house.detach("p")


async def test_a_connection_that_comes_back_within_the_deadline_brings_the_result() -> None:
    async with peers() as house:
        replies = iter([Result(handle(), 9), RequestNotSent("recovering"), Result(completed(), 9)])
        house.peer.automatic = lambda _: next(replies)
        assert isinstance(await call(house.board, "p", "get", {}, observe=house.events.append), Settled)
        assert sent(house) == [GET, GET]


async def test_a_server_that_came_back_without_the_task_leaves_the_effect_unknown() -> None:
    async with peers() as house:
        replies = iter([Result(handle(), 9), AnswerLost("it died"), RemoteError(-32602, "unknown")])
        house.peer.automatic = lambda _: next(replies)
        with pytest.raises(ToolCallFailed) as raised:
            await call(house.board, "p", "get", {}, observe=house.events.append)
        assert raised.value.outcome is Outcome.UNKNOWN
        assert sent(house) == [GET, GET]
        assert left(house) == NOTHING


ANSWERS: dict[str, Answer | RequestFault] = {
    "working": Result(state("working"), 9),
    "wants a": Result(wants(a=form()), 9),
    "wants a and b": Result(wants(a=form(), b=form()), 9),
    "completed": Result(completed(), 9),
    "cancelled": Result(state("cancelled"), 9),
    "unknown": RemoteError(-32602, "no"),
    "error": RemoteError(-32603, "no"),
    "malformed": Result({"status": None}, 9),
}
OVER = {"completed", "cancelled", "unknown", "told completed", "told cancelled"}
TELLS = {
    "told working": state("working", lastUpdatedAt=None),
    "told wants c": {**wants(c=form()), "lastUpdatedAt": "2026-07-28T10:31:00Z"},
    "told wants old": {**wants(d=form()), "lastUpdatedAt": "2026-07-28T10:29:00Z"},
    "told completed": completed(),
    "told cancelled": state("cancelled"),
    "told nonsense": state("completed"),
}
MOVES = st.sampled_from([*ANSWERS, *TELLS, "answer", "cancel"])


@dataclass
class Run:
    """One operation, everybody who acts on it, and what it got."""

    house: OperationsHouse
    group: anyio.abc.TaskGroup
    ends: list[Any] = field(default_factory=list[Any])

    async def client(self, work: Any) -> None:
        """Be the task of a client's request."""
        self.ends.append(await outcome_of(work))

    async def make(self, move: str, operation: OpenOperation) -> None:
        """Have the move happen where it can."""
        board = self.house.board
        if move == "cancel":
            board.cancel(operation.id)
        elif move in TELLS:
            self.house.peer.watched[TASK](TELLS[move])
        elif operation.is_waiting and move == "answer":
            entries = [dismisses(each.id) for each in operation.open_interrupts]
            self.group.start_soon(self.client, lambda: board.resume(entries, observe=ignore))
        elif not operation.is_waiting and move != "answer":
            while (request := await self.house.peer.next_request()).method != "tasks/get":
                pass
            request.answer(ANSWERS[move])
        await anyio.wait_all_tasks_blocked()


def ignore(_: RunEvent) -> None:
    """Watch nothing."""


QUICK = {"tools/call": handle(pollIntervalMs=0), "tasks/update": {}, "tasks/cancel": {}}


def quick(request: GatedRequest) -> Answer | None:
    """Answer everything but a poll."""
    return Result(QUICK[request.method], 9) if request.method in QUICK else None


@settings(deadline=None, max_examples=30)
@given(st.lists(MOVES, max_size=8))
async def test_in_any_order_there_is_one_end_no_lease_and_no_task_left(moves: list[str]) -> None:
    async with peers() as house, anyio.create_task_group() as group:
        house.peer.automatic = quick
        run, move, is_over = Run(house, group), "", False
        group.start_soon(run.client, lambda: call(house.board, "p", "get", {}, observe=ignore))
        await anyio.wait_all_tasks_blocked()
        (operation,) = house.board._open.all()
        for move in [*moves, *["completed", "answer"] * 2, "completed"]:
            await run.make(move, operation)
            is_over = is_over or (move in TELLS and move in OVER)
            if operation.machine.is_ended:
                break
        assert operation.machine.is_ended
        await house.boards.finish()
        assert sent(house).count(CANCEL) == (0 if is_over or move in OVER else 1)
        assert (left(house), house.peer.watched) == (NOTHING, {})
        # Nobody hears of the end of one that was cancelled while it waited.
        assert sum(not isinstance(end, Waiting) for end in run.ends) <= 1
        updates = [params["inputResponses"] for method, params in sent(house) if method == "tasks/update"]
        keys = [key for each in updates for key in each]
        assert len(keys) == len(set(keys))
