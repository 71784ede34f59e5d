"""When a connection lists again: soon after a change, never often, and never twice at once. SPEC §watch.

Decides only when; what a refresh does is its caller's. There is a task only while a refresh is due or under way, so an
idle connection has none, and it is no reader's task: requests and notifications go on meanwhile.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio
import structlog
from anyio.abc import TaskGroup

from app.concurrency import Latch
from app.connections.recovery import Attempts, Backoff

log = structlog.get_logger(__name__)

Refresh: TypeAlias = Callable[[frozenset[str]], Awaitable[bool]]
"""Lists these capabilities again; returns whether that is settled, or is to be tried again later."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often a server may make us list; seconds."""

    debounce: float = 0.25
    """From the first announcement to the refresh, so that a burst is one refresh."""
    interval: float = 2.0
    """From the end of one refresh to the next."""
    backoff: Backoff = field(default_factory=lambda: Backoff(first=2.0))
    """After refreshes that failed and may be tried again."""


class Refreshes:
    """The refreshes of one connection: at most one in flight, and at most one pending that gathers the rest."""

    def __init__(self, refresh: Refresh, pace: Pace, *, server: str) -> None:
        self._refresh = refresh
        self._pace = pace
        self._server = server
        self._pending: frozenset[str] = frozenset()
        self._group: TaskGroup | None = None
        self._scope: anyio.CancelScope | None = None
        self._over = Latch()
        self._not_before = 0.0
        self._failures = Attempts(pace.backoff)

    def ask(self, capabilities: frozenset[str]) -> None:
        """Have the lists of these capabilities listed again, once ``start`` was called; without awaiting."""
        self._pending |= capabilities
        if self._pending and self._group is not None and self._scope is None:
            scope, over = anyio.CancelScope(), Latch()
            self._group.start_soon(self._run, scope, over)
            # Not before: a group that is over raises, and nobody may wait for what never began.
            self._scope, self._over = scope, over

    def start(self, group: TaskGroup) -> None:
        """Refresh from now on in tasks of this group; what was asked for meanwhile is due."""
        self._group = group
        self.ask(frozenset())

    def stop(self) -> None:
        """Refresh no more, without awaiting, and forget what was asked for, until ``start``."""
        self._group = None
        self._pending = frozenset()
        if self._scope is not None:
            self._scope.cancel()

    async def stopped(self) -> None:
        """Stop, and return once nothing runs."""
        self.stop()
        if self._scope is not None:
            await self._over.wait()

    async def _run(self, scope: anyio.CancelScope, over: Latch) -> None:
        """Refresh until nothing is pending."""
        try:
            with scope:
                while self._pending:
                    await anyio.sleep(max(self._pace.debounce, self._not_before - anyio.current_time()))
                    due, self._pending = self._pending, frozenset()
                    await self._one(due)
        finally:
            self._scope = None
            over.set()

    async def _one(self, due: frozenset[str]) -> None:
        try:
            is_settled = await self._refresh(due)
        except Exception:
            # The border of the owner task: one server never takes its workspace down.
            log.exception("refresh-failed", server=self._server)
            is_settled = True
        if is_settled:
            self._failures = Attempts(self._pace.backoff)
            wait = self._pace.interval
        else:
            self._pending |= due
            wait = self._failures.delay_after(0.0)
        self._not_before = anyio.current_time() + wait
