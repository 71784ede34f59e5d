"""The event stream of one run: bounded, LF-framed server-sent events over plain ASGI. SPEC §agui.

Events are bytes when they arrive, so nothing that changes later can change them. Emitting never waits. A
client that reads slower than its run emits costs at most ``BEHIND`` bytes of news: beyond that progress is
dropped, and changes of the state are replaced by one snapshot of what it has become. One that reads nothing
for ``WRITE_TIMEOUT_S`` is gone.
"""

import asyncio
from collections.abc import Callable

import anyio

from app.doors.asgi import Send

KEEP_ALIVE_S = 15.0
BEHIND = 1024 * 1024
"""Bytes that may wait before news are dropped."""
CHUNK = 256 * 1024
"""Bytes handed to the server at once; each has ``WRITE_TIMEOUT_S`` to leave."""
WRITE_TIMEOUT_S = 60.0
_KEEP_ALIVE = b": keep-alive\n\n"
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """Writes what a run emits: ``write`` beside a run that takes long, ``finish`` at the end of each."""

    def __init__(
        self, send: Send, *, resynchronise: Callable[[], bytes], on_stall: Callable[[], None]
    ) -> None:
        self._send = send
        self._resynchronise = resynchronise
        self._on_stall = on_stall
        self._waiting: list[bytes] = []
        self._size = 0
        self._is_stale = False
        self._is_finished = False
        self._is_stalled = False
        self._wake = anyio.Event()
        self._writer_left: anyio.Event | None = None

    def emit(self, event: bytes) -> None:
        """Queue an event that the run cannot do without; a run has few of them."""
        if not self._is_finished:
            self._queue(event)
            self._wake.set()

    def emit_progress(self, event: bytes) -> bool:
        """Queue an event that a slow client can do without; return whether it was."""
        if self._size > BEHIND:
            return False
        self.emit(event)
        return True

    def emit_delta(self, event: bytes) -> None:
        """Queue a change of the state; a slow client gets one snapshot for all that it missed."""
        if self._size > BEHIND:
            self._is_stale = True
        else:
            self.emit(event)

    async def start(self, *events: bytes) -> None:
        """Send the head of the response and the first events."""
        for event in events:
            self.emit(event)  # Before the first await: what is emitted during it comes after these.
        await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await self._write_out(more=True)

    async def write(self) -> None:
        """Write what is emitted until the run finishes, and a comment where nothing was for a while."""
        if self._is_finished:
            return
        self._writer_left = anyio.Event()
        try:
            while not self._is_finished and not self._is_stalled:
                if not self._waiting:
                    await self._news_or_keep_alive()
                await self._write_out(more=True)
        finally:
            self._writer_left.set()

    async def finish(self, *events: bytes) -> None:
        """Write what is left, the last events and the end of the response."""
        self._catch_up()
        for event in events:
            self.emit(event)
        self.abandon()
        if self._writer_left is not None:
            await self._writer_left.wait()
        if not self._is_stalled:
            await self._write_out(more=False)

    def abandon(self) -> None:
        """Take up nothing more, and let the writer leave. Idempotent."""
        self._is_finished = True
        self._wake.set()

    async def _news_or_keep_alive(self) -> None:
        self._wake = anyio.Event()
        with anyio.move_on_after(KEEP_ALIVE_S):
            await self._wake.wait()
            return
        self._waiting.append(_KEEP_ALIVE)

    async def _write_out(self, *, more: bool) -> None:
        """Send everything that waits, in chunks that have to leave in time."""
        if more:
            self._catch_up()
            if not self._waiting:
                return
        body = memoryview(b"".join(self._waiting))
        self._waiting, self._size = [], 0
        for begin in range(0, max(len(body), 1), CHUNK):
            chunk = bytes(body[begin : begin + CHUNK])
            is_last = begin + CHUNK >= len(body)
            try:
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await self._send(
                        {"type": "http.response.body", "body": chunk, "more_body": more or not is_last}
                    )
            except TimeoutError:
                self._is_stalled = True
                self._on_stall()
                return

    def _catch_up(self) -> None:
        if self._is_stale:
            self._is_stale = False
            self._queue(self._resynchronise())

    def _queue(self, event: bytes) -> None:
        framed = b"data: " + event + b"\n\n"
        self._waiting.append(framed)
        self._size += len(framed)
