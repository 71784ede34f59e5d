"""What of anyio is made in every call or kept by every attachment, at less than half the price."""

import asyncio
from collections.abc import Callable
from functools import cache
from types import TracebackType

import anyio
from anyio.lowlevel import checkpoint


@cache
def _kind() -> type[anyio.CancelScope]:
    return type(anyio.CancelScope())


def cancel_scope() -> anyio.CancelScope:
    """Return a scope without a deadline, made in a running event loop.

    ``anyio.CancelScope()`` looks for the backend that runs each time it is called; there is one, asyncio.
    """
    return _kind()()


class Stop:
    """A block that anybody can end from outside, as ``asyncio.timeout`` ends its own.

    It costs a quarter of a cancel scope, of which every enter and every exit asks the system who runs; and no shield
    inside holds it up, so nothing is in it that has to complete.
    """

    __slots__ = ("_before", "_loop", "_task", "is_called")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the loop that the block runs in: to look for it, Python 3.11 asks the system which process we are."""
        self._loop = loop
        self.is_called = False
        """Whether somebody wanted it to end."""
        self._task: asyncio.Task[object] | None = None
        self._before = 0
        """How many others cancel the task already."""

    def cancel(self) -> None:
        """End the block, or have it end as it begins; nothing happens after it, or the second time."""
        if not self.is_called:
            self.is_called = True
            if self._task is not None:
                self._task.cancel()

    def __enter__(self) -> None:
        self._task = task = asyncio.current_task(self._loop)
        assert task is not None  # noqa: S101 everything of ours runs in a task
        self._before = task.cancelling()
        if self.is_called:
            task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        if task is None or not self.is_called:
            return False
        # Where somebody else cancels the task too, that goes on.
        return task.uncancel() <= self._before and kind is asyncio.CancelledError


class Bracket:
    """A block with a call before it and one after it, however it ends, at a fraction of ``contextmanager``'s price."""

    __slots__ = ("_begin", "_end")

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        """Take the two; where the first raises, the block is not entered and the second not called."""
        self._begin = begin
        self._end = end

    def __enter__(self) -> None:
        self._begin()

    def __exit__(self, *_: object) -> None:
        self._end()


class Latch:
    """An event that takes 48 bytes until somebody waits for it, where one of anyio takes 904."""

    __slots__ = ("_event", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._event: anyio.Event | None = None

    def set(self) -> None:
        """Let everybody who waits go on, and nobody wait again."""
        self._is_set = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Return once it is set; others have a turn in any case."""
        if self._is_set:
            await checkpoint()
            return
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()
