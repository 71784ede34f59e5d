"""The event stream: order, framing, batches, keep-alive, slow and stalled clients."""

from collections.abc import Callable
from typing import Any

import anyio
import orjson
import pytest

from app.agui import stream as module
from app.agui.state_view import StateView
from app.agui.stream import EventStream
from app.doors.asgi import Message
from app.workspaces.live_state import LiveState
from tests.support.eventually import eventually

pytestmark = pytest.mark.spec("agui")


class Wire:
    """Takes what is sent; ``hold`` makes it slow."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.open = anyio.Event()
        self.open.set()
        self.asked = anyio.Event()

    def hold(self) -> None:
        self.open = anyio.Event()
        self.asked = anyio.Event()

    async def send(self, message: Message) -> None:
        self.asked.set()
        await self.open.wait()
        self.messages.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)

    @property
    def is_complete(self) -> bool:
        return self.messages[-1].get("more_body") is False


def ignore() -> None:
    return


def stream(
    wire: Wire, state: LiveState | None = None, *, on_stall: Callable[[], None] = ignore
) -> EventStream:
    view = StateView(state or LiveState("w"), {})
    view.follow()
    return EventStream(wire.send, view, on_stall=on_stall)


def change(state: LiveState, name: str) -> None:
    state.put("servers", name, {"name": name})


def told(body: bytes) -> list[str]:
    """Return the servers that each event adds, or the event where it is none of the state."""
    shown = list[str]()
    for line in body.decode().split("\n\n")[:-1]:
        event: Any = line.removeprefix("data: ")
        if event.startswith("{"):
            event = orjson.loads(event)
            whole = event.get("snapshot", {"plurnk": {"servers": {}}})["plurnk"]["servers"]
            paths = [each["path"] for each in event.get("delta", [])[:-1]]
            event = "+".join((*whole, *(path.removeprefix("/plurnk/servers/") for path in paths)))
        shown.append(event)
    return shown


async def test_a_short_run_is_written_in_one_piece() -> None:
    wire = Wire()
    run = stream(wire)
    run.emit(b"1", b"2")
    run.emit(b"3")
    await run.finish(b"5", b"6")
    head, *bodies = wire.messages
    assert head["status"] == 200
    assert dict(head["headers"]) == {
        b"content-type": b"text/event-stream; charset=utf-8",
        b"content-length": b"45",
        b"cache-control": b"no-store",
    }
    assert [each["body"] for each in bodies] == [b"data: 1\n\ndata: 2\n\ndata: 3\n\ndata: 5\n\ndata: 6\n\n"]
    assert "more_body" not in bodies[0]


async def test_what_is_emitted_while_the_head_is_sent_comes_after_the_first_events() -> None:
    wire = Wire()
    run = stream(wire)
    wire.hold()
    run.emit(b"1")
    async with anyio.create_task_group() as group:
        group.start_soon(run.write)
        await wire.asked.wait()
        run.emit(b"2")
        wire.open.set()
        await run.finish(b"3")
    assert wire.body == b"data: 1\n\ndata: 2\n\ndata: 3\n\n"


async def test_the_writer_writes_while_the_run_goes_on_and_leaves_at_the_end() -> None:
    wire = Wire()
    run = stream(wire)
    run.emit(b"1")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.write)
            await anyio.wait_all_tasks_blocked()
            assert wire.body == b"data: 1\n\n"
            assert dict(wire.messages[0]["headers"]) == {
                b"content-type": b"text/event-stream; charset=utf-8",
                b"cache-control": b"no-cache, no-transform",
                b"x-accel-buffering": b"no",
            }
            for event in (b"2", b"3"):
                await anyio.wait_all_tasks_blocked()
                run.emit(event)
            await anyio.wait_all_tasks_blocked()
            assert wire.body.endswith(b"data: 3\n\n")
            assert not wire.is_complete
            await run.finish(b"4")
    assert wire.body == b"data: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n"
    assert wire.is_complete


async def test_the_end_waits_for_a_writer_in_the_middle_of_a_chunk() -> None:
    wire = Wire()
    run = stream(wire)
    run.emit(b"1")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.write)
            await anyio.wait_all_tasks_blocked()
            wire.hold()
            run.emit(b"2")
            await wire.asked.wait()
            run.emit(b"3")
            group.start_soon(run.finish, b"4")
            await anyio.wait_all_tasks_blocked()
            wire.open.set()
    assert wire.body == b"data: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n"


async def test_a_silent_run_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEEP_ALIVE_S", 0.01)
    wire = Wire()
    run = stream(wire)
    run.emit(b"1")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.write)
            await eventually(lambda: wire.body.count(b": keep-alive\n\n") >= 2)
            await run.finish(b"2")
    assert wire.body.startswith(b"data: 1\n\n: keep-alive\n\n")
    assert wire.body.endswith(b"data: 2\n\n")


def test_keep_alive_is_fifteen_seconds() -> None:
    assert module.KEEP_ALIVE_S == 15.0


async def test_what_changed_is_told_before_the_next_event_of_the_run() -> None:
    wire, state = Wire(), LiveState("w")
    run = stream(wire, state)
    run.emit(b"1")
    change(state, "p")
    change(state, "q")
    run.emit(b"2")
    change(state, "r")
    await run.finish(b"3")
    assert told(wire.body) == ["1", "p+q", "2", "r", "3"]


async def test_the_writer_tells_the_first_change_after_a_pause_at_once_and_others_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "NEWS_AFTER_S", 0.0)
    wire, state = Wire(), LiveState("w")
    view = StateView(state, {})
    unfollow = view.follow()
    run = EventStream(wire.send, view, on_stall=ignore)
    run.emit(b"1")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.write)
            await anyio.wait_all_tasks_blocked()  # in the pause
            monkeypatch.setattr(module, "NEWS_AFTER_S", 0.05)
            change(state, "p")
            await eventually(lambda: told(wire.body) == ["1", "p"])
            change(state, "q")
            await anyio.wait_all_tasks_blocked()
            assert told(wire.body) == ["1", "p"]
            change(state, "r")
            await eventually(lambda: told(wire.body) == ["1", "p", "q+r"])
            monkeypatch.setattr(module, "NEWS_AFTER_S", 0.0)
            change(state, "s")
            await eventually(lambda: told(wire.body) == ["1", "p", "q+r", "s"])
            await anyio.wait_all_tasks_blocked()  # in the next pause
            await run.finish(b"2")
    assert told(wire.body) == ["1", "p", "q+r", "s", "2"]
    unfollow()
    assert not state.has_listeners


async def test_nothing_is_taken_up_after_the_end() -> None:
    wire, state = Wire(), LiveState("w")
    run = stream(wire, state)
    await run.finish(b"1", b"2")
    run.emit(b"3")
    change(state, "p")
    await run.write()
    assert wire.body == b"data: 1\n\ndata: 2\n\n"


async def test_a_slow_client_loses_progress_and_is_told_all_changes_together_in_the_end() -> None:
    wire, state = Wire(), LiveState("w")
    run = stream(wire, state)
    big = b"x" * (module.BEHIND + 1)
    run.emit(big)
    assert not run.emit_progress(b"progress")
    change(state, "p")
    run.emit(b"result")
    change(state, "q")
    await run.finish(b"end")
    assert told(wire.body) == [big.decode(), "result", "p+q", "end"]


async def test_a_client_that_caught_up_gets_news_again() -> None:
    wire, state = Wire(), LiveState("w")
    run = stream(wire, state)
    big = b"x" * (module.BEHIND + 1)
    run.emit(big)
    change(state, "missed")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.write)
            await anyio.wait_all_tasks_blocked()
            assert run.emit_progress(b"progress")
            change(state, "p")
            await run.finish(b"end")
    assert told(wire.body) == [big.decode(), "missed", "progress", "p", "end"]


async def test_what_waits_for_a_client_that_reads_nothing_stays_bounded() -> None:
    wire, state = Wire(), LiveState("w")
    run = stream(wire, state)
    news = b"x" * 1000
    for number in range(10_000):
        run.emit_progress(news)
        state.put("servers", "p", {"name": f"{number}" * 100})
    await run.finish(b"end")
    assert wire.body.count(b"STATE_SNAPSHOT") == 1
    assert len(wire.body) < module.BEHIND + 4 * len(news)


async def test_a_big_event_leaves_in_chunks_and_arrives_whole() -> None:
    wire = Wire()
    run = stream(wire)
    big = bytes(range(97, 123)) * (module.CHUNK // 10)
    run.emit(b"1")
    await run.finish((b"{", big, b"}"))
    assert wire.body == b"data: 1\n\ndata: {" + big + b"}\n\n"
    assert max(len(each.get("body", b"")) for each in wire.messages) == module.CHUNK
    assert [each["more_body"] for each in wire.messages[1:]] == [True, True, False]


@pytest.mark.parametrize("has_writer", [True, False])
async def test_a_client_that_takes_nothing_for_long_is_gone(
    has_writer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITE_TIMEOUT_S", 0.01)
    wire, stalled = Wire(), anyio.Event()
    run = stream(wire, on_stall=stalled.set)
    wire.hold()
    run.emit(b"1" if has_writer else b"x" * module.CHUNK)
    with anyio.fail_after(5):
        if has_writer:
            await run.write()
        await run.finish(b"2")
    assert stalled.is_set()
    assert wire.messages == []


async def test_an_abandoned_stream_lets_its_writer_leave() -> None:
    wire = Wire()
    run = stream(wire)
    run.emit(b"1")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(run.write)
            await anyio.wait_all_tasks_blocked()
            run.abandon()
    assert not wire.is_complete
