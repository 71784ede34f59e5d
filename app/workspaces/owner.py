"""The owner of one workspace's tasks: a task group that begins with the first use. SPEC §hydration, §shutdown.

A task that raises is a bug: it is logged and ends alone. Should the group itself fail all the same, the workspace is
told, and the next use begins another; neither the daemon nor another workspace notices.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVarTuple, Unpack

import anyio
import structlog
from anyio.abc import TaskGroup, TaskStatus

from app.concurrency import Latch
from app.core.problems import ShuttingDown

log = structlog.get_logger("plurnk.workspace")

Arguments = TypeVarTuple("Arguments")


class Owner:
    """Owns the tasks of one workspace from its first use until ``stop``."""

    def __init__(
        self,
        workspace: str,
        *,
        begin: Callable[["Owner"], Awaitable[None]],
        on_failure: Callable[[], Awaitable[None]],
    ) -> None:
        """Take what has ``run`` run, and what to do once everything in the group was cut off by a bug."""
        self._workspace = workspace
        self._begin = begin
        self._on_failure = on_failure
        self._beginning = anyio.Lock()
        self._group: TaskGroup | None = None
        self._stop = anyio.Event()
        self._over: Latch | None = None

    @property
    def is_alive(self) -> bool:
        """Whether tasks can be started."""
        return self._group is not None

    @property
    def group(self) -> TaskGroup:
        """The group itself, for what starts tasks of its own.

        Raises:
            ShuttingDown: there is none.
        """
        if self._group is None:
            raise ShuttingDown
        return self._group

    async def be(self) -> None:
        """Return once there is a group.

        Raises:
            ShuttingDown: the workspace was stopped.
        """
        async with self._beginning:
            if self._stop.is_set():
                raise ShuttingDown
            if self._group is None:
                # A caller that leaves in the very turn in which the group begins would take it away from the others.
                with anyio.CancelScope(shield=True):
                    await self._begin(self)

    def start(self, work: Callable[[Unpack[Arguments]], Awaitable[object]], *arguments: *Arguments) -> bool:
        """Run the work in the group; return whether there is one."""
        if self._group is None:
            return False

        async def guarded() -> None:
            try:
                await work(*arguments)
            except (
                Exception
            ):  # The border of an owner task: one bug takes neither the workspace nor the daemon down.
                log.exception("task-failed", workspace=self._workspace)

        self._group.start_soon(guarded)
        return True

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Hold the group until ``stop``; raises nothing but cancellation."""
        self._over = over = Latch()
        try:
            await self._hold(task_status)
        except Exception:
            log.exception("workspace-failed", workspace=self._workspace)
            await self._on_failure()
        finally:
            over.set()

    async def _hold(self, task_status: TaskStatus[None]) -> None:
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                task_status.started()
                await self._stop.wait()
                group.cancel_scope.cancel()
        finally:
            self._group = None

    def stop(self) -> None:
        """End every task; no other group begins."""
        self._stop.set()

    async def stopped(self) -> None:
        """Stop, and return once every task has ended."""
        self.stop()
        if self._over is not None:
            await self._over.wait()
