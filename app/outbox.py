"""What is written in one turn of the event loop leaves together, as the next one begins. docs/decisions/0009.

Each write wakes whoever waits for it. Written one by one between other work, each wakes a peer that has just fallen
asleep; written together, one wakes it for all.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Writer = TypeVar("Writer")


class Outbox(Generic[Writer]):
    """Remembers who has something to write, in the order they came, and has them write when the loop comes round.

    Whoever is alone with what it has in flight has nobody to wait for, and writes without it.
    """

    __slots__ = ("_loop", "_waiting", "_write")

    def __init__(self, loop: asyncio.AbstractEventLoop, write: Callable[[Sequence[Writer]], None]) -> None:
        """Take what has them write."""
        self._loop = loop
        self._write = write
        self._waiting: list[Writer] = []

    def add(self, writer: Writer) -> None:
        """Have it write soon."""
        if not self._waiting:
            self._loop.call_soon(self._write_all)
        self._waiting.append(writer)

    def _write_all(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._write(waiting)
