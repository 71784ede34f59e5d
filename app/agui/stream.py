"""The event stream of one run: bounded, LF-framed server-sent events over plain ASGI. SPEC §agui.

Events are bytes when they arrive, so nothing that changes later can change them. Emitting never waits. A run that is
soon over is written in one piece. Changes of the state are told before the next event of the run, or beside a run
that takes long after ``NEWS_AFTER_S``. A client that reads slower than its run emits costs at most ``BEHIND`` bytes
of news: beyond that progress is dropped, and changes wait to be told together. One that reads nothing for
``WRITE_TIMEOUT_S`` is gone.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import TypeAlias

from app.agui.state_view import StateView
from app.doors.asgi import Send, send_whole

KEEP_ALIVE_S = 15.0
NEWS_AFTER_S = 0.25
"""How long nothing has to have been written before a change of the state is written for its own sake."""
BEHIND = 1024 * 1024
"""Bytes that may wait before news are dropped."""
CHUNK = 256 * 1024
"""Bytes handed to the server at once; each has ``WRITE_TIMEOUT_S`` to leave."""
WRITE_TIMEOUT_S = 60.0
_BEGIN, _END = b"data: ", b"\n\n"
_TYPE = b"text/event-stream; charset=utf-8"
_KEEP_ALIVE = b": keep-alive\n\n"
_FRAME = len(_BEGIN + _END)
_HEADERS = [
    (b"content-type", _TYPE),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


Event: TypeAlias = bytes | tuple[bytes, ...]
"""The JSON of one event, or its parts in order: a large one is not joined before it is sent."""


class EventStream:
    """Writes what a run emits: ``write`` beside a run that takes long, ``finish`` at the end of each."""

    __slots__ = (
        "_has_begun",
        "_is_finished",
        "_is_stalled",
        "_on_stall",
        "_send",
        "_size",
        "_unsubscribe",
        "_view",
        "_waiting",
        "_wake",
        "_writing",
    )

    def __init__(self, send: Send, view: StateView, *, on_stall: Callable[[], None]) -> None:
        self._send = send
        self._view = view
        self._on_stall = on_stall
        self._waiting: list[bytes] = []
        self._size = 0
        self._has_begun = False
        self._is_finished = False
        self._is_stalled = False
        self._wake: asyncio.Event | None = None
        """What the writer waits for."""
        self._unsubscribe: Callable[[], None] | None = None
        """Set while a change of the state wakes the writer."""
        self._writing: asyncio.Event | None = None
        """Set once the writer has sent what it is sending now."""

    def emit(self, *events: Event) -> None:
        """Queue events that the run cannot do without; a run has few of them."""
        if self._is_finished:
            return
        if self._size <= BEHIND:
            self.catch_up()
        for event in events:
            self._queue(event)
        if self._wake is not None:
            self._wake.set()

    def emit_progress(self, event: bytes) -> bool:
        """Queue an event that a slow client can do without; return whether it was."""
        if self._size > BEHIND:
            return False
        self.emit(event)
        return True

    def catch_up(self) -> None:
        """Queue what changed in the state since that was shown last."""
        if self._view.has_missed and (news := self._view.news()) is not None:
            self._queue(news)

    async def write(self) -> None:
        """Write what is emitted until the run finishes, and a comment where nothing was for a while."""
        while not self._is_finished and not self._is_stalled:
            self._writing = asyncio.Event()
            try:
                await self._write_out(more=True)
            finally:
                self._writing.set()
                self._writing = None
            await self._something_to_write()

    async def finish(self, *events: Event) -> None:
        """Write what is left, the last events and the end of the response."""
        self.catch_up()
        self.emit(*events)
        self.abandon()
        if self._writing is not None:
            await self._writing.wait()
        if not self._is_stalled:
            await self._write_out(more=False)

    def abandon(self) -> None:
        """Take up nothing more, and let the writer leave. Idempotent."""
        self._is_finished = True
        if self._wake is not None:
            self._wake.set()

    async def _something_to_write(self) -> None:
        """Return at the next event of the run; else where the state changed, or with a comment."""
        if self._waiting or self._is_finished or self._is_stalled:
            return
        self._wake = wake = asyncio.Event()
        loop = asyncio.get_running_loop()
        timers = (
            loop.call_later(NEWS_AFTER_S, self._heed_news, wake),
            loop.call_later(KEEP_ALIVE_S, wake.set),
        )
        try:
            await wake.wait()
        finally:
            for timer in timers:
                timer.cancel()
            if self._unsubscribe is not None:
                self._unsubscribe()
                self._unsubscribe = None
        if not (self._waiting or self._view.has_missed or self._is_finished):
            self._waiting.append(_KEEP_ALIVE)
            self._size += len(_KEEP_ALIVE)

    def _heed_news(self, wake: asyncio.Event) -> None:
        """Have the next change of the state written, or the last where there was one meanwhile."""
        if self._view.has_missed:
            wake.set()
        else:
            self._unsubscribe = self._view.subscribe(wake.set)

    async def _write_out(self, *, more: bool) -> None:
        """Send everything that waits, in chunks that have to leave in time."""
        if more:
            self.catch_up()
            if not self._waiting:
                return
        waiting, size = self._waiting, self._size
        self._waiting, self._size = [], 0
        if not (more or self._has_begun) and size <= CHUNK:
            # A whole answer, bounded as every other is: by the connection that takes nothing any more.
            await send_whole(self._send, 200, b"".join(waiting), media_type=_TYPE)
            return
        for chunk in _chunks(waiting):
            size -= len(chunk)
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await self._send_chunk(chunk, more=more or size > 0)
            except TimeoutError:
                self._is_stalled = True
                self._on_stall()
                return

    async def _send_chunk(self, chunk: bytes, *, more: bool) -> None:
        if not self._has_begun:
            self._has_begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await self._send({"type": "http.response.body", "body": chunk, "more_body": more})

    def _queue(self, event: Event) -> None:
        if isinstance(event, bytes):
            self._waiting += (_BEGIN, event, _END)
            self._size += len(event) + _FRAME
        else:
            self._waiting += (_BEGIN, *event, _END)
            self._size += sum(map(len, event)) + _FRAME


def _chunks(parts: list[bytes]) -> Generator[bytes]:
    """Return the parts cut and joined to chunks, at least one; each byte is copied once."""
    chunk, room = list[bytes | memoryview](), CHUNK
    for part in parts:
        rest = memoryview(part)
        while len(rest) > room:
            chunk.append(rest[:room])
            yield b"".join(chunk)
            rest, chunk, room = rest[room:], [], CHUNK
        chunk.append(rest)
        room -= len(rest)
    yield b"".join(chunk)
