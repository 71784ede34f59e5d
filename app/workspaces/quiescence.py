"""Leases and the commit gate of each server: one lock and one set of operations. SPEC §lifecycle.

An operation takes the lock just long enough to count itself; a commit holds it and refuses while anybody is counted.
So a call that arrives during the milliseconds of a commit waits, and then gets the new connection.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from app.core.problems import ServerBusy


class Gate:
    """The gate of one server of one workspace."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._lock = asyncio.Lock()  # One of anyio takes 700 bytes more.
        self._near = 0
        """How many hold the lock or wait for it: between two of them it is not locked."""
        self._operations: dict[str, None] = {}

    @property
    def operations(self) -> tuple[str, ...]:
        """The ids of the active operations, oldest first."""
        return tuple(self._operations)

    @property
    def is_held(self) -> bool:
        """Whether somebody is counted, or holds it, or waits for that."""
        return bool(self._operations or self._near)

    def enter_now(self, operation: str) -> bool:
        """Count the operation, without awaiting, unless a commit is under way; return whether it is counted."""
        if self._lock.locked():
            return False
        self._operations[operation] = None
        return True

    async def enter(self, operation: str) -> None:
        """Count the operation; waits while a commit is under way."""
        if not self.enter_now(operation):
            async with self._locked():
                self._operations[operation] = None

    def leave(self, operation: str) -> None:
        """Stop counting the operation; nothing happens where it is not counted."""
        self._operations.pop(operation, None)

    @asynccontextmanager
    async def quiet(self) -> AsyncGenerator[None]:
        """Hold the gate: nobody is counted, and nobody gets in until the block ends.

        Raises:
            ServerBusy: an operation is counted.
        """
        async with self._locked():
            self.require_quiet()
            yield

    def require_quiet(self) -> None:
        """Return where nobody is counted now.

        Raises:
            ServerBusy: an operation is counted.
        """
        if self._operations:
            raise ServerBusy(self._server, operations=self.operations)

    @asynccontextmanager
    async def _locked(self) -> AsyncGenerator[None]:
        self._near += 1
        try:
            async with self._lock:
                yield
        finally:
            self._near -= 1
