"""Operations under any order of answers, decisions, cancels, timeouts, disconnects: one end, nothing left."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.answers import AnswerLost, AnswerMalformed, HttpRefusal, RemoteError, RequestNotSent, Result
from app.core.events import RunEvent, ToolCallEnded, ToolCallStarted
from app.core.interrupts import ResumeEntry
from app.core.oauth_problems import OAuthCallbackInvalid
from app.core.operation_problems import (
    AnswerInvalid,
    InterruptConflict,
    InterruptExpired,
    OperationNotFound,
    ResumeIncomplete,
)
from app.core.problem import Problem, Stage
from app.core.problems import TooMany
from app.operations.board import Settled, Waiting, Working
from app.operations.tool_call import call
from tests.support.deferring import TASK, completed, failed, handle, state, wants
from tests.support.eliciting import asks, form, link
from tests.support.gated_connection import catalog, tool_entry
from tests.support.operations_house import OperationsHouse, operations_house
from tests.support.sign_ins import FOREIGN, GatedAttempt, oauth

CATALOG = catalog([tool_entry("get"), tool_entry("put")])
GOOD: dict[str, Any] = {"content": [{"type": "text", "text": "done"}]}
END = Result({"resultType": "complete"}, 9)
ANSWERS: dict[str, Any] = {
    "result": Result(GOOD, len(orjson.dumps(GOOD))),
    "tool error": Result({**GOOD, "isError": True}, 80),
    "malformed": Result({"content": None}, 20),
    "too large": Result(GOOD, 10**9),
    "form": Result(asks(state="s", q=form()), 60),
    "form and url": Result(asks(q=form(), r=link()), 60),
    "url": Result(asks(q=link()), 60),
    "task": Result(handle(pollIntervalMs=60_000), 60),
    "state only": Result(asks(state="s"), 60),
    "no input": Result(asks(), 60),
    "sampling": Result(asks(q=form(), r={"method": "sampling/createMessage"}), 60),
    "error": RemoteError(-32603, "no"),
    "refusal": HttpRefusal(503),
    "unauthorized": HttpRefusal(401),
    "lost": AnswerLost("it died"),
    "garbage": AnswerMalformed("not JSON"),
    "not sent": RequestNotSent("no child"),
}
TELLS: dict[str, Any] = {
    "working": state("working"),
    "wants": wants(q=form()),
    "completed": completed(GOOD),
    "failed": failed(),
    "cancelled": state("cancelled"),
    "not whole": state("completed"),
}
"""What a server tells of a task by itself."""
DECISIONS: dict[str, tuple[Any, ...]] = {
    "accept": ("resolved", {"decision": "accept"}),
    "reject": ("resolved", {"decision": "reject"}),
    "cancelled": ("cancelled",),
    "declined": ("cancelled", None, {"plurnk": {"action": "decline"}}),
    "fill in": ("resolved", {"env": "prod"}),
    "unfit": ("resolved", {"decision": 1}),
    "callback": ("resolved", {"callbackUrl": GatedAttempt().callback}),
    "foreign callback": ("resolved", {"callbackUrl": FOREIGN}),
}


@dataclass
class Client:
    """One run or REST request, and what it got."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    got: Any = None
    is_done: bool = False
    events: list[RunEvent] = field(default_factory=list[RunEvent])


@dataclass
class World:
    """The house, everybody who ever asked anything of it, and the end of each operation as first seen."""

    house: OperationsHouse
    start: Callable[..., Any]
    attempts: list[GatedAttempt]
    """Every sign-in that is begun or will be."""
    clients: list[Client] = field(default_factory=list[Client])
    interrupts: list[str] = field(default_factory=list[str])
    operations: list[str] = field(default_factory=list[str])
    ends: dict[str, Any] = field(default_factory=dict[str, Any])

    async def run(self, client: Client, work: Callable[[], Any]) -> None:
        """Be the task of a client's request."""
        try:
            with client.scope:
                client.got = await work()
        except Problem as problem:
            client.got = problem.document(Stage.OPERATION)
        client.is_done = True

    def client(self, work: Callable[[Client], Callable[[], Any]]) -> None:
        """Start a client's request."""
        client = Client()
        self.clients.append(client)
        self.start(self.run, client, work(client))

    def note(self) -> None:
        """Remember which operations and interrupts there are, and see that no end ever changes."""
        for interrupt in self.house.board.open_interrupts():
            if interrupt.id not in self.interrupts:
                self.interrupts.append(interrupt.id)
        for operation in self.house.state("operations"):
            if operation not in self.operations:
                self.operations.append(operation)
        for operation in self.operations:
            end = self.end_of(operation)
            if end is not None:
                assert self.ends.setdefault(operation, end) == end

    def end_of(self, operation: str) -> Any:
        """Return how it ended, or None while it is open."""
        try:
            standing = self.house.board.result_of(operation)
        except OperationNotFound:
            raise
        except Problem as problem:
            return problem.document(Stage.OPERATION)
        return None if isinstance(standing, Waiting | Working) else standing.result


def exchanging(world: World) -> list[Any]:
    """Return the sign-ins whose exchange waits."""
    attempts = [each for each in world.attempts if each.exchanging.is_set() and each.gate is not None]
    return [each for each in attempts if each.gate is not None and not each.gate.is_set()]


def pick(things: list[Any], index: int) -> Any:
    return things[index % len(things)] if things else None


async def perform(  # noqa: C901, PLR0912 a table of commands
    world: World, command: str, choice: str, index: int
) -> None:
    """Do one thing to the world."""
    house = world.house
    match command:
        case "call":
            tool = "put" if index % 2 else "get"
            world.client(
                lambda client: lambda: call(house.board, "p", tool, {}, observe=client.events.append)
            )
        case "decide" if world.interrupts:
            entry = ResumeEntry(pick(world.interrupts, index), *DECISIONS[choice])
            world.client(lambda client: lambda: house.board.resume([entry], observe=client.events.append))
        case "decide all" if house.board.open_interrupts():
            asked = pick(list(house.board.open_interrupts()), index).operation
            entries = [
                ResumeEntry(each.id, *DECISIONS[choice])
                for each in house.board.open_interrupts()
                if each.operation == asked
            ]
            world.client(lambda client: lambda: house.board.resume(entries, observe=client.events.append))
        case "decide one" if world.interrupts:
            entry = ResumeEntry(pick(world.interrupts, index), *DECISIONS[choice])
            world.client(lambda client: lambda: house.board.answer(entry, observe=client.events.append))
        case "answer":
            waiting = [
                each for each in house.peer.requests if not each._gate.is_set() and not each.is_cancelled
            ]
            if waiting:
                pick(waiting, index).answer(ANSWERS[choice])
        case "tell" if TASK in house.peer.watched:
            house.peer.watched[TASK](TELLS[choice])
        case "exchange":
            for attempt in exchanging(world):
                attempt.gate.set()
        case "cancel" if world.operations:
            with suppress(OperationNotFound):
                house.board.cancel(pick(world.operations, index))
        case "disconnect" if world.clients:
            pick(world.clients, index).scope.cancel()
        case "time out":
            running = [each for each in house.board._open.all() if each.driven is not None]
            if running:
                pick(running, index).driven.cancel()
        case "expire":
            waiting_ones = [each for each in house.board._open.all() if each.is_waiting]
            if waiting_ones:
                pick(waiting_ones, index).due = time.monotonic()
        case _:
            pass


CHOICES: dict[str, list[str]] = {
    # What follows these two is as much as what follows all the others.
    "answer": [*ANSWERS, *["task"] * 8, *["unauthorized"] * 6],
    "tell": list(TELLS),
    **{name: [*DECISIONS, *["callback"] * 4] for name in ("decide", "decide all", "decide one")},
}


def possible(world: World) -> list[str]:
    """Return the commands that do something now, the ones that lead on several times."""
    house = world.house
    opened = house.board._open.all()
    open_requests = [
        each for each in house.peer.requests if not each._gate.is_set() and not each.is_cancelled
    ]
    return [
        "call",
        *["answer"] * 8 * bool(open_requests),
        *["tell"] * 4 * (TASK in house.peer.watched),
        *["decide all"] * 3 * bool(house.board.open_interrupts()),
        *["decide", "decide one"] * bool(world.interrupts),
        *["exchange"] * 4 * bool(exchanging(world)),
        *["cancel"] * bool(opened),
        *["disconnect", "time out"] * any(each.driven is not None for each in opened),
        *["expire"] * any(each.is_waiting for each in opened),
    ]


NUMBER = st.integers(0, 719)
STEP = st.tuples(NUMBER, NUMBER, st.integers(0, 7), st.sampled_from([True, True, True, False]))
"""Which command, which choice, of which thing, and whether everybody has come to rest before the next."""


def require_consistent(world: World) -> None:
    """See that what is shown, counted and leased is exactly what is open."""
    house = world.house
    opened = house.board._open.all()
    assert set(house.state("operations")) == {each.id for each in opened}
    assert house.boards.open_count == len(opened)
    assert set(house.state("interactions")) == {each.id for each in house.board.open_interrupts()}
    assert set(house.leases()) == {
        each.id for each in opened if each.driven is not None or each.machine.is_dispatched
    }
    signing_in = any(each.machine.is_signing_in for each in opened)
    assert len(house.workspace.pending) == len(house.state("pending")) <= signing_in


def require_nothing_left(world: World) -> None:
    house = world.house
    assert house.board._open.all() == ()
    assert (house.board._open._by_interrupt, house.peer.watched) == ({}, {})
    assert (house.state("operations"), house.state("interactions"), house.leases()) == ({}, {}, ())
    assert (house.boards.open_count, house.workspace._users) == (0, 0)
    assert (len(house.workspace.pending), house.state("pending")) == (0, {})
    assert all(client.is_done for client in world.clients)
    events = [event for client in world.clients for event in client.events]
    begun = {each.operation for each in events if isinstance(each, ToolCallStarted)}
    assert sum(house.telemetry.measures.operations.values.values()) == len(begun)
    assert all(request.is_cancelled or request._gate.is_set() for request in house.peer.requests)


def require_one_end(world: World) -> None:
    """See that every operation ended once, and that every client that heard of an end heard of that one."""
    assert set(world.ends) == set(world.operations)
    events = [event for client in world.clients for event in client.events]
    for operation in world.operations:
        started = [
            each for each in events if isinstance(each, ToolCallStarted) and each.operation == operation
        ]
        assert len(started) == 1
        results = [each for each in events if isinstance(each, ToolCallEnded) and each.operation == operation]
        end = world.ends[operation]
        assert all(each == results[0] for each in results)
        if "content" not in end:
            assert results == []
    told = [client.got.result for client in world.clients if isinstance(client.got, Settled)]
    assert all(result in world.ends.values() for result in told)


HARMLESS = {
    each.code
    for each in (
        AnswerInvalid,
        InterruptConflict,
        InterruptExpired,
        OAuthCallbackInvalid,
        ResumeIncomplete,
        TooMany,
    )
}


@pytest.mark.spec("calls", "observe")
@settings(max_examples=80, deadline=None)
@given(steps=st.lists(STEP, min_size=8, max_size=25))
def test_every_operation_ends_once_and_leaves_nothing(steps: list[tuple[int, int, int, bool]]) -> None:
    async def main() -> None:
        definitions = {"p": oauth(read=["get"])}
        environment = {"PLURNK_MAX_WORKSPACE_OPERATIONS": "4"}
        async with (
            operations_house({"p": CATALOG}, definitions=definitions, environment=environment) as house,
            anyio.create_task_group() as group,
        ):
            # Nobody waits for the acknowledgement of a cancelled task.
            house.peer.automatic = lambda request: END if request.method == "tasks/cancel" else None
            attempts = [GatedAttempt() for _ in steps]
            for attempt in attempts[::2]:
                attempt.gate = anyio.Event()
            house.peer.attempts.extend(attempts)
            world = World(house, group.start_soon, attempts)
            for which, chosen, index, is_awaited in steps:
                command = pick(possible(world), which)
                await perform(world, command, pick(CHOICES.get(command, [""]), chosen), index)
                if is_awaited:
                    await anyio.wait_all_tasks_blocked()
                    world.note()
                    require_consistent(world)
            await anyio.wait_all_tasks_blocked()
            world.note()
            for operation in list(house.state("operations")):
                house.board.cancel(operation)
            await anyio.wait_all_tasks_blocked()
            world.note()
            require_one_end(world)
            require_nothing_left(world)
            problems = [client.got["code"] for client in world.clients if isinstance(client.got, dict)]
            known = {end.get("code") for end in world.ends.values()} | HARMLESS
            assert set(problems) <= known

    anyio.run(main)
