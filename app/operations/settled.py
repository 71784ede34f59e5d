"""SettledOperations: how a workspace's operations ended, kept a while to be repeated. SPEC §calls."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.core.operation import Ending

KEPT_S: Final = 600.0
KEPT_MAX: Final = 1000
KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Bytes of peers' messages that the kept results of one workspace may come from; the oldest go first."""


@dataclass(frozen=True, slots=True)
class SettledOperation:
    """An operation that ended."""

    id: str
    kind: str
    ending: Ending
    answers: Mapping[str, str]
    """Every interrupt that was answered, with the fingerprint of its answer."""
    unanswered: frozenset[str]
    """The interrupts that were open when it ended."""
    is_expired: bool
    """Whether it ended because nobody answered in time."""
    is_cancelled: bool
    tool_call_id: str | None
    size: int


class SettledOperations:
    """At most ``KEPT_MAX`` of them and ``KEPT_BYTES_MAX``, each for ``kept_s`` seconds; one timer forgets."""

    def __init__(self, *, kept_s: float = KEPT_S) -> None:
        self._kept_s = kept_s
        self._kept: OrderedDict[str, tuple[SettledOperation, float]] = OrderedDict()
        self._by_interrupt: dict[str, str] = {}
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, settled: SettledOperation) -> None:
        """Keep it from now on, at the cost of the oldest where there are too many."""
        loop = asyncio.get_running_loop()
        self._kept[settled.id] = (settled, loop.time() + self._kept_s)
        self._bytes += settled.size
        for interrupt in (*settled.answers, *settled.unanswered):
            self._by_interrupt[interrupt] = settled.id
        while len(self._kept) > KEPT_MAX or (self._bytes > KEPT_BYTES_MAX and len(self._kept) > 1):
            self._forget_oldest()
        if self._timer is None:
            self._timer = loop.call_later(self._kept_s, self._forget_due)

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
            self._forget_oldest()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget_due(self) -> None:
        """Forget what is due and set the timer for the oldest that is left."""
        loop, self._timer = asyncio.get_running_loop(), None
        while self._kept:
            due = next(iter(self._kept.values()))[1]
            if due > loop.time():
                self._timer = loop.call_at(due, self._forget_due)
                return
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        _, (settled, _) = self._kept.popitem(last=False)
        self._bytes -= settled.size
        for interrupt in (*settled.answers, *settled.unanswered):
            self._by_interrupt.pop(interrupt, None)
