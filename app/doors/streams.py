"""Every request in flight: how many streams are open, whether the client is still there, the end at shutdown.

SPEC §limits, §shutdown, §agui. A request's work runs in the request's own task. What has to happen beside it
(noticing that the client left, writing what the work emits) starts only once the work has taken
``ATTEND_AFTER_S``: most requests are over by then and cost no task. Those companions live in the registry's
task group and end with their request.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from enum import Enum

import anyio
import structlog
from anyio.abc import TaskGroup

from app.core.problems import ShuttingDown, TooMany
from app.doors.asgi import Receive

log = structlog.get_logger("plurnk.doors")

ATTEND_AFTER_S = 0.05
"""How long a request may take before companions are worth a task."""
END_WITHIN_S = 3.0
"""How long clients may take to read the end of their runs at shutdown."""

Companion = Callable[[], Awaitable[None]]


class Ending(Enum):
    """Why the work of a request was stopped."""

    CLIENT_GONE = "client-gone"
    SHUTDOWN = "shutdown"


class Attention:
    """One request in flight: a scope around its work, and why the work was stopped."""

    __slots__ = ("_companions", "_listening", "_receive", "_registry", "_scope", "_timer", "ending")

    def __init__(self, registry: "OpenStreams", receive: Receive) -> None:
        self.ending: Ending | None = None
        """Why the work was stopped; None while nobody stopped it."""
        self._registry = registry
        self._receive = receive
        self._companions: list[Companion] = [self._listen]
        self._scope = anyio.CancelScope()
        self._listening: anyio.CancelScope | None = None
        self._timer: asyncio.TimerHandle | None = None

    def beside(self, companion: Companion) -> None:
        """Run this too beside work that takes long; it has to return once the request is over."""
        self._companions.append(companion)

    def stop(self, ending: Ending) -> None:
        """Cancel the work, for this reason where it is the first; what the work shields completes."""
        if self.ending is None:
            self.ending = ending
            self._scope.cancel()

    @contextmanager
    def work(self) -> Generator[None]:
        """Do the work inside; a stopped one ends here, silently, with ``ending`` set."""
        self._timer = asyncio.get_running_loop().call_later(ATTEND_AFTER_S, self._attend)
        try:
            with self._scope:
                yield
        finally:
            self._timer.cancel()

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

    def dismiss(self) -> None:
        """Stop listening."""
        if self._listening is not None:
            self._listening.cancel()


class OpenStreams:
    """The registry of requests in flight and the owner of their companions."""

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._open = 0
        self._attended: set[Attention] = set()
        self._group: TaskGroup | None = None
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
    def open_count(self) -> int:
        """How many streams are open."""
        return self._open

    @contextmanager
    def stream(self) -> Generator[None]:
        """Count one open stream during the block.

        Raises:
            TooMany: the limit is reached.
        """
        if self._open >= self._limit:
            raise TooMany("open streams", limit=self._limit, setting="PLURNK_MAX_STREAMS")
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    @contextmanager
    def attend(self, receive: Receive) -> Generator[Attention]:
        """Give the request's work attention during the block; its body must have been read before.

        Raises:
            ShuttingDown: nothing is taken up any more.
        """
        if self._is_ending:
            raise ShuttingDown
        attention = Attention(self, receive)
        self._attended.add(attention)
        try:
            yield attention
        finally:
            attention.dismiss()
            self._attended.discard(attention)
            if self._is_ending and not self._attended:
                self._idle.set()

    async def end_all(self, *, within_s: float = END_WITHIN_S) -> None:
        """Stop the work of every request and return once each has sent its end, or the time is over."""
        self._is_ending = True
        for attention in tuple(self._attended):
            attention.stop(Ending.SHUTDOWN)
        if self._attended:
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
