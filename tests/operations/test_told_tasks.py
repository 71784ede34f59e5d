"""What servers tell of tasks by themselves: operations that wait hear of it, over both transports. SPEC §calls, §watch.

Hand-written wire for what no good server sends, and when.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.answers import Result
from app.core.json_value import JsonObject
from app.core.operation_problems import OperationTimeout
from app.core.problem import Problem
from app.operations.board import Settled, Waiting
from app.operations.tool_call import call
from tests.operations.test_real_peers import board_of, ignore
from tests.operations.test_scripted_asking import by_http, replied
from tests.operations.test_scripted_tasks import read, script
from tests.support.board_house import NOTHING, ask, left, outcome_of, peers, resume
from tests.support.children import SCRIPTED_STDIO
from tests.support.deferring import TASK, completed, failed, handle, state, wants
from tests.support.eliciting import dismisses, form
from tests.support.eventually import eventually
from tests.support.operations_house import OperationsHouse
from tests.support.peers.programs import stdio_definition
from tests.support.scripted_http import HANG, error, event, scripted_http, stream
from tests.support.subscriptions import ACKNOWLEDGED, acknowledged, notification

pytestmark = [pytest.mark.spec("calls", "watch"), pytest.mark.timeout(60)]

NEVER = 60_000
"""An interval after which nobody polls in a test."""
GRANTED: JsonObject = {"taskIds": [TASK]}


def tells(value: JsonObject, identifier: Any = "$id") -> dict[str, Any]:
    """Return the notification of a task's state."""
    params = {name: each for name, each in value.items() if name != "resultType"}
    return notification("notifications/tasks", identifier, **params)


def acknowledges(notifications: JsonObject) -> dict[str, Any]:
    return notification(ACKNOWLEDGED, notifications=notifications)


NOISE = [
    tells(completed(taskId="other")),
    tells(completed(), "1"),
    tells(completed(), None),
    tells(state("completed")),
    tells(state("failed", error="no")),
    tells(state("paused")),
    tells(state("working", pollIntervalMs="1")),
    notification("notifications/tasks"),
]
TOLD: dict[str, tuple[list[dict[str, Any]], str]] = {
    "completed": ([tells(completed())], "done"),
    "failed": ([tells(failed())], "remote-error"),
    "cancelled": ([tells(state("cancelled"))], "operation-cancelled"),
    "input required": ([tells(wants(a=form()))], "waits"),
    "working, then completed": ([tells(state("working")), tells(completed())], "done"),
    "what says nothing, then completed": ([*NOISE, tells(completed())], "done"),
    "before the acknowledgement": ([], "done"),
}


def listened(name: str) -> list[dict[str, Any]]:
    """Return what is said on the stream."""
    if name == "before the acknowledgement":
        return [tells(failed()), acknowledges(GRANTED), tells(completed())]
    return [acknowledges(GRANTED), *TOLD[name][0]]


def ended(got: Any) -> str:
    """Return how the call came to rest, in a word."""
    if isinstance(got, Problem):
        return got.code
    return "waits" if isinstance(got, Waiting) else "done"


@pytest.mark.parametrize("name", TOLD)
async def test_over_http_a_told_state_saves_every_poll(name: str) -> None:
    answers: Any = {
        "tools/call": replied(handle(pollIntervalMs=NEVER)),
        "tasks/cancel": replied({}),
        "subscriptions/listen": stream(*map(event, listened(name)), HANG),
    }
    async with scripted_http(answers) as peer, board_of(by_http(peer)) as board:
        assert ended(await outcome_of(partial(call, board, "p", "echo", {}, observe=ignore))) == TOLD[name][1]
        assert (len(peer.of("tools/call")), len(peer.of("tasks/get"))) == (1, 0)
        (listen,) = peer.of("subscriptions/listen")
        assert listen.params["notifications"] == GRANTED
        if TOLD[name][1] != "waits":
            # Nothing is watched any more, and a task that is over is not cancelled.
            with anyio.fail_after(5):
                await listen.gone.wait()
            assert peer.of("tasks/cancel") == []


@pytest.mark.parametrize("name", TOLD)
async def test_over_stdio_a_told_state_saves_every_poll(name: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    raw = "".join(event(each).removeprefix("data: ").strip() + "\n" for each in listened(name))
    told = script(
        log,
        tools_call=[{"result": handle(pollIntervalMs=NEVER)}],
        subscriptions_listen=[{"raw": raw}],
        tasks_cancel=[{"result": {}}],
    )
    async with board_of(stdio_definition("p", SCRIPTED_STDIO, told, read=["echo"])) as board:
        assert ended(await outcome_of(partial(call, board, "p", "echo", {}, observe=ignore))) == TOLD[name][1]
        if TOLD[name][1] != "waits":
            await eventually(lambda: len(read(log)) == 3)
    cancels = ["notifications/cancelled", *["tasks/cancel"] * (TOLD[name][1] == "waits")]
    call_, listen, *others = [str(each["method"]) for each in read(log)]
    assert (call_, listen, sorted(others)) == ("tools/call", "subscriptions/listen", cancels)


NO_GRANT: dict[str, Any] = {
    "nothing granted": stream(acknowledged({}), HANG),
    "another task granted": stream(acknowledged({"taskIds": ["other"]}), event(tells(failed())), HANG),
    "no such method": error(-32601, status=404),
    "a stream that breaks": stream(acknowledged(GRANTED)),
    "a stream that is silent": stream(acknowledged(GRANTED), HANG),
}


@pytest.mark.parametrize("name", NO_GRANT)
async def test_a_server_that_tells_nothing_is_polled_at_its_interval(name: str) -> None:
    gets = [*[replied(state("working"))] * 9, replied(completed())]
    answers: Any = {
        "tools/call": replied(handle()),
        "tasks/get": gets,
        "subscriptions/listen": NO_GRANT[name],
    }
    async with scripted_http(answers) as peer, board_of(by_http(peer)) as board:
        assert isinstance(await call(board, "p", "echo", {}, observe=ignore), Settled)
        assert len(peer.of("tasks/get")) == 10
        assert len(peer.of("subscriptions/listen")) == 1 or name == "a stream that breaks"


# In which order


@asynccontextmanager
async def following(
    *, polls_every: int = NEVER, timeout_ms: int = 600_000
) -> AsyncGenerator[tuple[OperationsHouse, list[Any]]]:
    """Run a house with a call that has become a task, whose server tells when the test says so."""
    async with peers(PLURNK_MCP_REQUEST_TIMEOUT=f"{timeout_ms}") as house, anyio.create_task_group() as group:
        ends: list[Any] = []
        answers = {"tools/call": handle(pollIntervalMs=polls_every), "tasks/cancel": {}}
        house.peer.automatic = lambda request: (
            Result(answers[request.method], 9) if request.method in answers else None
        )

        async def client() -> None:
            ends.append(await outcome_of(lambda: call(house.board, "p", "get", {}, observe=ignore)))

        group.start_soon(client)
        await house.peer.next_request()
        await anyio.wait_all_tasks_blocked()
        yield house, ends
        group.cancel_scope.cancel()


async def tell(house: OperationsHouse, value: JsonObject) -> None:
    """Have the server tell, and everybody hear of it."""
    house.peer.watched[TASK](value)
    await anyio.wait_all_tasks_blocked()


async def test_the_end_is_told_during_a_poll_which_is_given_up() -> None:
    async with following(polls_every=50) as (house, ends):
        poll = await house.peer.next_request()
        await tell(house, completed())
        assert ended(ends[0]) == "done"
        assert (poll.method, poll.is_cancelled) == ("tasks/get", True)
        assert (left(house), house.peer.watched) == (NOTHING, {})
        assert len(house.peer.requests) == 2


@pytest.mark.parametrize("is_later", [True, False])
async def test_of_a_told_and_a_polled_state_the_later_one_counts(*, is_later: bool) -> None:
    async with following(polls_every=50) as (house, ends):
        poll = await house.peer.next_request()
        moment = f"2026-07-28T10:{31 if is_later else 29}:00Z"
        await tell(house, {**wants(a=form()), "lastUpdatedAt": moment})
        assert (ends, poll.is_cancelled) == ([], False)
        poll.answer(Result(state("working", pollIntervalMs=NEVER), 9))
        await anyio.wait_all_tasks_blocked()
        assert [ended(end) for end in ends] == ["waits"] * is_later


async def test_a_told_state_counts_as_a_poll() -> None:
    async with following(polls_every=NEVER) as (house, ends):
        await tell(house, state("working", pollIntervalMs=50))
        (await house.peer.next_request()).answer(Result(completed(), 9))
        await eventually(lambda: bool(ends))
        assert [request.method for request in house.peer.requests] == ["tools/call", "tasks/get"]


async def asked(house: OperationsHouse, ends: list[Any]) -> Waiting:
    await tell(house, wants(a=form()))
    (waiting,) = ends
    assert isinstance(waiting, Waiting)
    return waiting


@pytest.mark.parametrize(("end", "outcome"), [(completed(), "done"), (failed(), "remote-error")])
async def test_a_task_that_ends_while_a_person_thinks_takes_no_answer(end: JsonObject, outcome: str) -> None:
    async with following() as (house, ends):
        waiting = await asked(house, ends)
        await tell(house, end)
        assert house.board.open_interrupts() == waiting.interrupts
        assert ended(await outcome_of(lambda: resume(house, dismisses(waiting.interrupts[0].id)))) == outcome
        assert (left(house), house.peer.watched) == (NOTHING, {})
        assert [request.method for request in house.peer.requests] == ["tools/call"]
        # And again, as every answered question does.
        assert ended(await outcome_of(lambda: resume(house, dismisses(waiting.interrupts[0].id)))) == outcome


async def test_nobody_answers_about_a_task_that_has_ended() -> None:
    async with following(timeout_ms=400) as (house, ends):
        waiting = await asked(house, ends)
        await tell(house, completed())
        await eventually(lambda: not len(house.board._open))
        with pytest.raises(OperationTimeout):
            house.board.result_of(waiting.operation)
        assert (left(house), house.peer.watched) == (NOTHING, {})
        assert [request.method for request in house.peer.requests] == ["tools/call"]


async def test_the_end_is_told_during_an_update_which_is_given_up() -> None:
    async with following() as (house, ends), anyio.create_task_group() as group:
        waiting = await asked(house, ends)

        async def answer() -> None:
            ends.append(await outcome_of(lambda: resume(house, dismisses(waiting.interrupts[0].id))))

        group.start_soon(answer)
        update = await house.peer.next_request()
        await tell(house, state("working"))
        assert (update.method, update.is_cancelled) == ("tasks/update", False)
        await tell(house, completed())
        assert (ended(ends[1]), update.is_cancelled) == ("done", True)


async def test_what_is_told_after_the_end_finds_nobody() -> None:
    async with following() as (house, ends):
        hears = house.peer.watched[TASK]
        await tell(house, completed())
        for value in (completed(), failed(), wants(a=form()), state("working")):
            hears(value)
        assert (ended(ends[0]), left(house)) == ("done", NOTHING)


async def test_an_operation_that_somebody_cancels_is_watched_no_more() -> None:
    async with peers() as house:
        waiting = await ask(house, handle(), wants(a=form()))
        assert list(house.peer.watched) == [TASK]
        house.peer.automatic = lambda _: Result({}, 9)
        house.board.cancel(waiting.operation)
        assert (left(house), house.peer.watched) == (NOTHING, {})
        await house.boards.finish()
