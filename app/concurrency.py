"""What of anyio is made in every call or kept by every attachment, at less than half the price."""

from functools import cache

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
