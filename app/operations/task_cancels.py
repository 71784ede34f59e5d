"""TaskCancels: tells servers to stop the tasks of operations that ended without them. SPEC §calls.

Best effort: the operation has its end already, nobody waits for the answer, and what it says changes nothing.
Each is a bounded task of the workspace's owner.
"""

import anyio

from app.core.answers import RequestFault
from app.ports import Connection
from app.workspaces.owner import Owner

CANCEL_S = 5.0
"""How long a server may take to acknowledge."""
FINISH_S = 1.0
"""How long a daemon that goes down waits for all of them."""


class TaskCancels:
    """The ``tasks/cancel`` requests of one workspace that are under way."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._count = 0
        self._over: anyio.Event | None = None

    def __len__(self) -> int:
        return self._count

    def send(self, connection: Connection, task_id: str) -> None:
        """Have the server told, once; without waiting."""
        if self._owner.start(self._send, connection, task_id):
            self._count += 1

    async def finish(self) -> None:
        """Return once all of them are over, or the time for that is."""
        with anyio.move_on_after(FINISH_S):
            while self._count:
                self._over = self._over or anyio.Event()
                await self._over.wait()

    async def _send(self, connection: Connection, task_id: str) -> None:
        try:
            with anyio.move_on_after(CANCEL_S):
                await connection.request("tasks/cancel", {"taskId": task_id})
        except RequestFault:
            pass  # The server is gone, and the task perhaps with it.
        finally:
            self._count -= 1
            if not self._count and self._over is not None:
                self._over.set()
                self._over = None
