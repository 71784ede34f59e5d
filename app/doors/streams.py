"""Every request in flight: how many streams are open, whether the client is still there, the end at shutdown.

SPEC §limits, §shutdown, §agui. A request's work runs in the request's own task. What has to happen beside it
(writing what the work emits; noticing that the client left, where nobody tells of it) starts only once the work has
taken ``ATTEND_AFTER_S``: most requests are over by then and cost no task. Those companions live in the registry's
task group and end with their request.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from enum import Enum
from types import TracebackType

import anyio
import structlog
from anyio.abc import TaskGroup

from app.concurrency import Bracket, Stop, cancel_scope
from app.core.problems import ShuttingDown, TooMany
from app.doors.asgi import Receive
from app.doors.presence import Presence

log = structlog.get_logger("plurnk.doors")

ATTEND_AFTER_S = 0.05
"""How long a request may take before companions are worth a task, if it is alone."""
ATTEND_LATER_S = 0.001
"""How much longer for each other request in flight: that much a request waits for its turns."""
ATTEND_LATER_MAX_S = 0.2
END_WITHIN_S = 3.0
"""How long clients may take to read the end of their runs at shutdown."""

Companion = Callable[[], Awaitable[None]]


class Ending(Enum):
    """Why the work of a request was stopped."""

    CLIENT_GONE = "client-gone"
    SHUTDOWN = "shutdown"


class Attention:
    """One request in flight: a scope around its work, and why the work was stopped."""

    __slots__ = ("_companions", "_listening", "_presence", "_receive", "_registry", "_scope", "ending")

    def __init__(
        self,
        registry: "OpenStreams",
        receive: Receive,
        presence: Presence | None,
        scope: anyio.CancelScope | Stop,
    ) -> None:
        self.ending: Ending | None = None
        """Why the work was stopped; None while nobody stopped it."""
        self._registry = registry
        self._receive = receive
        self._presence = presence
        self._companions: list[Companion] = [] if presence is not None else [self._listen]
        self._scope = scope
        self._listening: anyio.CancelScope | None = None

    def __enter__(self) -> "Attention":
        """Be in the registry during the block."""
        self._registry.attended.add(self)
        if self._presence is not None:
            self._presence.watch(self._leave)
        return self

    def __exit__(self, *_: object) -> None:
        if self._presence is not None:
            self._presence.forget(self._leave)
        if self._listening is not None:
            self._listening.cancel()
        self._registry.discard(self)

    def _leave(self) -> None:
        self.stop(Ending.CLIENT_GONE)

    def beside(self, companion: Companion) -> None:
        """Run this too beside work that takes long; it has to return once the request is over."""
        self._companions.append(companion)

    def stop(self, ending: Ending) -> None:
        """Cancel the work, for this reason where it is the first; what the work shields completes."""
        if self.ending is None:
            self.ending = ending
            self._scope.cancel()

    def work(self) -> AbstractContextManager[object, bool]:
        """Do the work inside; a stopped one ends here, silently, with ``ending`` set."""
        return _AttendedWork(self, self._scope) if self._companions else self._scope

    def attend_later(self) -> asyncio.TimerHandle:
        """Start the companions once the work has taken so long that they are worth a task."""
        after_s = ATTEND_AFTER_S + self._registry.patience_s
        return asyncio.get_running_loop().call_later(after_s, self._attend)

    def _attend(self) -> None:
        for companion in self._companions:
            self._registry.start(companion)

    async def _listen(self) -> None:
        """Notice that the client left; also returns once the response is complete."""
        with anyio.CancelScope() as self._listening:
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    self.stop(Ending.CLIENT_GONE)
                    return


class _AttendedWork:
    """The block of one request's work that has companions."""

    __slots__ = ("_attention", "_scope", "_timer")

    def __init__(self, attention: Attention, scope: anyio.CancelScope | Stop) -> None:
        self._attention = attention
        self._scope = scope

    def __enter__(self) -> None:
        self._timer = self._attention.attend_later()
        self._scope.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._timer.cancel()
        return self._scope.__exit__(kind, error, trace)


class OpenStreams:
    """The registry of requests in flight and the owner of their companions."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._open = 0
        self.attended: set[Attention] = set()
        """The requests in flight, to be stopped at shutdown."""
        self._group: TaskGroup | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_ending = False
        self._idle = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Own the companions of every request inside the block."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                group.cancel_scope.cancel()

    @property
    def is_ending(self) -> bool:
        """Whether ``end_all`` was called; nothing new is taken up then."""
        return self._is_ending

    @property
    def patience_s(self) -> float:
        """How much longer a request may take because of those in flight."""
        return min(len(self.attended) * ATTEND_LATER_S, ATTEND_LATER_MAX_S)

    @property
    def open_count(self) -> int:
        """How many streams are open."""
        return self._open

    def stream(self) -> AbstractContextManager[None]:
        """Count one open stream during the block.

        Raises:
            TooMany: the limit is reached, as the block begins.
        """
        return Bracket(self.open, self.close)

    def open(self) -> None:
        """Count one more open stream.

        Raises:
            TooMany: the limit is reached.
        """
        if self._open >= self._limit:
            raise TooMany("open streams", limit=self._limit, setting="PLURNK_MAX_STREAMS")
        self._open += 1

    def close(self) -> None:
        """Count one less."""
        self._open -= 1

    def attend(
        self, receive: Receive, presence: Presence | None = None, *, shields: bool = True
    ) -> Attention:
        """Give the request's work attention during the block; its body must have been read before.

        Without a presence somebody listens for the client's end. Work that shields no part of itself, as operations do
        not, is stopped at a lower price.

        Raises:
            ShuttingDown: nothing is taken up any more.
        """
        if self._is_ending:
            raise ShuttingDown
        if shields:
            return Attention(self, receive, presence, cancel_scope())
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return Attention(self, receive, presence, Stop(self._loop))

    def discard(self, attention: Attention) -> None:
        """Forget a request that is over."""
        self.attended.discard(attention)
        if self._is_ending and not self.attended:
            self._idle.set()

    async def end_all(self, *, within_s: float = END_WITHIN_S) -> None:
        """Stop the work of every request and return once each has sent its end, or the time is over."""
        self._is_ending = True
        for attention in tuple(self.attended):
            attention.stop(Ending.SHUTDOWN)
        if self.attended:
            with anyio.move_on_after(within_s):
                await self._idle.wait()

    def start(self, companion: Companion) -> None:
        """Run one companion in the registry's task group; nothing it raises reaches its siblings."""
        if self._group is not None:
            self._group.start_soon(self._guarded, companion)

    async def _guarded(self, companion: Companion) -> None:
        try:
            await companion()
        except Exception:  # The border of an owner task: one request's failure is not another's.
            log.error("companion-failed", exc_info=True)
