"""Connections on their way out: closed in the workspace's group, none forgotten before it is closed. SPEC §lifecycle.

Closing a child may take seconds. Whoever began it may be gone by then, so the end of the workspace finds here what it
still has to wait for.
"""

from collections.abc import Iterable

import anyio
import structlog

from app.concurrency import Latch
from app.ports import Connection
from app.workspaces.owner import Owner

log = structlog.get_logger("plurnk.workspace")


class Retirements:
    """The retirements of one workspace."""

    def __init__(self, workspace: str, owner: Owner) -> None:
        self._workspace = workspace
        self._owner = owner
        self._leaving: dict[int, Connection] = {}

    def __len__(self) -> int:
        return len(self._leaving)

    def begin(self, connection: Connection) -> Latch:
        """Close the connection in the owner's group; return what is set once that is over.

        Without a group it is closed by the next ``finish``.
        """
        over = Latch()
        self._leaving[id(connection)] = connection
        if not self._owner.start(self._close_then, connection, over):
            over.set()
        return over

    async def finish(self, connections: Iterable[Connection]) -> None:
        """Return once these connections and every one that was begun are closed, all attempted."""
        await self.close([*connections, *self._leaving.values()])

    async def close(self, connections: Iterable[Connection]) -> None:
        """Return once these connections are closed, all attempted, in the caller's own task."""
        async with anyio.create_task_group() as closing:
            for connection in {id(each): each for each in connections}.values():
                closing.start_soon(self._close, connection)

    async def _close_then(self, connection: Connection, over: Latch) -> None:
        try:
            await self._close(connection)
        finally:
            over.set()

    async def _close(self, connection: Connection) -> None:
        try:
            failure = await connection.retire()
        except Exception:  # It should raise nothing; where it does, the others are closed all the same.
            log.exception("close-failed", workspace=self._workspace, server=connection.server)
        else:
            if failure:
                log.warning(
                    "close-failed", workspace=self._workspace, server=connection.server, reason=failure
                )
        self._leaving.pop(id(connection), None)
