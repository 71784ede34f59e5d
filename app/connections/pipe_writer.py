"""Writing to a child's standard input without ever blocking, in bounded memory. SPEC §connection.

A plain descriptor watched by the loop: unlike a stream it tells whether a message has begun to leave, and
takes back one that has not.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable

HIGH_WATER = 256 * 1024
"""Bytes waiting in the daemon above which a writer has to wait; one message may exceed it."""


class Written:
    """One message on its way."""

    __slots__ = ("left", "size")

    def __init__(self, data: bytes) -> None:
        self.left = memoryview(data)
        self.size = len(data)

    @property
    def has_begun(self) -> bool:
        """Whether the reader may have seen any of it."""
        return len(self.left) < self.size


class PipeWriter:
    """The one writer of a pipe; owns its descriptor."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        os.set_blocking(descriptor, False)
        self._loop = asyncio.get_running_loop()
        self._descriptor: int | None = descriptor
        self._on_broken = on_broken
        self._queue: deque[Written] = deque()
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._room.set()

    @property
    def is_closed(self) -> bool:
        """Whether nothing can be written any more."""
        return self._descriptor is None

    @property
    def waiting_bytes(self) -> int:
        """Bytes that the reader's side has not taken yet."""
        return self._waiting_bytes

    async def room(self) -> None:
        """Return when less than ``HIGH_WATER`` waits, or the pipe is closed."""
        while not self._room.is_set():
            await self._room.wait()

    def write(self, data: bytes) -> Written:
        """Send the message now as far as the pipe takes it, the rest later; never blocks.

        Where the pipe is closed, or turns out to be broken, the message has not begun.
        """
        message = Written(data)
        if self._descriptor is None:
            return message
        self._queue.append(message)
        self._waiting_bytes += message.size
        if len(self._queue) == 1:
            self._flush()
            self._watch()
        if self._waiting_bytes > HIGH_WATER:
            self._room.clear()
        return message

    def withdraw(self, message: Written) -> bool:
        """Return whether the message was taken back before any of it left."""
        if message.has_begun or message not in self._queue:
            return False
        self._queue.remove(message)
        self._took(message.size)
        if not self._queue and self._descriptor is not None:
            self._loop.remove_writer(self._descriptor)
        return True

    def close(self) -> None:
        """Close the pipe at once; what has not left never will. Idempotent."""
        if self._descriptor is None:
            return
        self._loop.remove_writer(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None
        self._queue.clear()
        self._waiting_bytes = 0
        self._room.set()

    def _flush(self) -> None:
        """Write until the pipe is full or the queue is empty."""
        while self._queue and self._descriptor is not None:
            message = self._queue[0]
            try:
                count = os.write(self._descriptor, message.left)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.close()
                self._on_broken()
                return
            message.left = message.left[count:]
            if not message.left:
                self._queue.popleft()
            self._took(count)
        if self._descriptor is not None:
            self._loop.remove_writer(self._descriptor)

    def _watch(self) -> None:
        """Have the rest written when the pipe has room."""
        if self._queue and self._descriptor is not None:
            self._loop.add_writer(self._descriptor, self._flush)

    def _took(self, count: int) -> None:
        """Count bytes that no longer wait."""
        self._waiting_bytes -= count
        if self._waiting_bytes <= HIGH_WATER:
            self._room.set()
