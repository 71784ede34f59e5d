"""SettledOperations: how a workspace's operations ended, kept a while to be repeated. SPEC §calls.

What has ended is kept as what it comes to, not as what it was made with: the JSON of its result, or its Problem. That
is what it is counted by, in its workspace and in the daemon.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Final

import orjson

from app.core.problem import Problem
from app.core.steps import Completed, Ending, Failed
from app.core.value import value

KEPT_S: Final = 600.0
KEPT_MAX: Final = 1000
KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes that the kept ends of one workspace may have; the oldest go first."""
SHELF_BYTES_MAX: Final = 256 * 1024 * 1024
"""Bytes that those of all workspaces may have."""
SHELF_SLACK: Final = 256
"""Of so many bytes one more is freed where there are too many."""
END_BYTES: Final = 1024
"""What an end needs beside its result, and at most what each of its interrupts needs."""


@value
class SettledOperation:
    """An operation that ended."""

    id: str
    kind: str
    end: bytes | Problem
    """The result of its action as JSON, or the Problem it ended in."""
    answers: Mapping[str, str]
    """Every interrupt that was answered, with the fingerprint of its answer."""
    unanswered: frozenset[str]
    """The interrupts that were open when it ended."""
    is_expired: bool
    """Whether it ended because nobody answered in time."""
    is_cancelled: bool
    tool_call_id: str | None

    @property
    def ending(self) -> Ending:
        """Its end, as it was."""
        if isinstance(self.end, Problem):
            return Failed(self.end)
        return Completed(orjson.loads(self.end), self.end)

    @property
    def size(self) -> int:
        """The bytes that it counts for."""
        end = orjson.dumps(self.end.document()) if isinstance(self.end, Problem) else self.end
        return END_BYTES * (1 + len(self.answers) + len(self.unanswered)) + len(end)


def kept_end(ending: Ending) -> bytes | Problem:
    """Return the end without anything that it holds alive."""
    match ending:
        case Completed(_, encoded):
            return encoded
        case Failed(problem):
            return problem.again()


class Shelf:
    """How much is kept of the ends of operations in the daemon: at most so many bytes, fairly.

    Where it is too much, the workspace that keeps the most loses its oldest: nobody can drive out what others have. A
    little more goes than must, so that the workspaces are looked at once in a while and not at each end.
    """

    def __init__(self, limit: int = SHELF_BYTES_MAX) -> None:
        self._limit = limit
        self._size = 0
        self._keeping: set[SettledOperations] = set()

    def add(self, settled: "SettledOperations", size: int) -> None:
        """Take notice that they have grown by an end of this size, and make room for it."""
        self._keeping.add(settled)
        self._size += size
        if self._size > self._limit:
            self._make_room(settled)

    def remove(self, settled: "SettledOperations", size: int) -> None:
        """Take notice that they have lost an end of this size."""
        self._size -= size
        if not len(settled):
            self._keeping.discard(settled)

    def _make_room(self, newest: "SettledOperations") -> None:
        largest_first = [(-each.size, number, each) for number, each in enumerate(self._keeping)]
        heapify(largest_first)
        while largest_first and self._size > self._limit - self._limit // SHELF_SLACK:
            _, number, largest = heappop(largest_first)
            if largest is newest and len(largest) == 1:
                continue  # What has only just been kept is asked for next.
            largest.forget_oldest()
            if len(largest):
                heappush(largest_first, (-largest.size, number, largest))


class SettledOperations:
    """At most ``KEPT_MAX`` of them and ``KEPT_BYTES_MAX``, each for ``kept_s`` seconds; one timer forgets."""

    def __init__(self, shelf: Shelf, *, kept_s: float = KEPT_S) -> None:
        self._shelf = shelf
        self._kept_s = kept_s
        self._kept: OrderedDict[str, tuple[SettledOperation, int, float]] = OrderedDict()
        """The oldest first, each with its size and the time until when it is kept."""
        self._by_interrupt: dict[str, str] = {}
        self.size = 0
        """The bytes that all of them count for."""
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, settled: SettledOperation) -> None:
        """Keep it from now on, at the cost of the oldest where there are too many."""
        size = settled.size
        self._kept[settled.id] = (settled, size, time.monotonic() + self._kept_s)
        self.size += size
        for interrupt in (*settled.answers, *settled.unanswered):
            self._by_interrupt[interrupt] = settled.id
        while len(self._kept) > KEPT_MAX or (self.size > KEPT_BYTES_MAX and len(self._kept) > 1):
            self.forget_oldest()
        self._shelf.add(self, size)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._kept_s, self._forget_due)

    def find(self, operation: str) -> SettledOperation | None:
        """Return the settled operation of this id, where it is kept."""
        kept = self._kept.get(operation)
        return kept[0] if kept else None

    def of_interrupt(self, interrupt: str) -> SettledOperation | None:
        """Return the settled operation that put this interrupt, where it is kept."""
        operation = self._by_interrupt.get(interrupt)
        return None if operation is None else self.find(operation)

    def clear(self) -> None:
        """Forget all of them."""
        while self._kept:
            self.forget_oldest()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def forget_oldest(self) -> None:
        """Forget the one that has been kept the longest; there is one."""
        _, (settled, size, _) = self._kept.popitem(last=False)
        self.size -= size
        for interrupt in (*settled.answers, *settled.unanswered):
            self._by_interrupt.pop(interrupt, None)
        self._shelf.remove(self, size)

    def _forget_due(self) -> None:
        """Forget what is due and set the timer for the oldest that is left."""
        self._timer = None
        while self._kept:
            *_, due = next(iter(self._kept.values()))
            if (left := due - time.monotonic()) > 0:
                self._timer = asyncio.get_running_loop().call_later(left, self._forget_due)
                return
            self.forget_oldest()
