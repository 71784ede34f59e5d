"""WorkspaceManager: every workspace, made on first use and owned to the end. SPEC §hydration, §shutdown."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Protocol

import anyio
import structlog
from anyio.abc import TaskGroup, TaskStatus

from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.problem import Problem
from app.core.problems import ShuttingDown, TooMany
from app.ports import Connector, Store
from app.settings import Settings
from app.workspaces.owner import Owner
from app.workspaces.pending import Places
from app.workspaces.workspace import Workspace

log = structlog.get_logger("plurnk.manager")

EAGER_AT_ONCE = 16
"""Workspaces that hydrate at the same time at an eager start."""
SWEEPS_PER_IDLE = 4
"""How often in one idle time the workspaces are looked at."""


class Kept(Protocol):
    """What is kept of the operations of workspaces; the ring above has it."""

    def is_kept(self, workspace: Workspace) -> bool:
        """Return whether an operation of the workspace is open, or has ended and is kept."""
        ...

    def forget(self, workspace: Workspace) -> None:
        """Keep nothing of the workspace any more."""
        ...


class WorkspaceManager:
    """Owns the workspaces. ``run`` is their parent task; a workspace that ends does not touch its siblings."""

    def __init__(
        self,
        *,
        settings: Settings,
        defaults: Mapping[str, StdioDefinition | HttpDefinition],
        store: Store,
        connector: Connector,
        kept: Kept,
    ) -> None:
        self._settings = settings
        self._defaults = defaults
        self._store = store
        self._connector = connector
        self._kept = kept
        self._workspaces: dict[str, Workspace] = {}
        self._places = Places(settings.max_pending)
        self._group: TaskGroup | None = None
        self._stop = anyio.Event()
        self._is_closing = False

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Own every workspace until ``shut_down``."""
        async with anyio.create_task_group() as group:
            self._group = group
            if self._settings.workspace_idle_ms:
                group.start_soon(self._retire_idle)
            if self._settings.hydrate == "eager":
                group.start_soon(self._hydrate_stored)
            task_status.started()
            await self._stop.wait()
            group.cancel_scope.cancel()

    def workspace(self, name: str) -> Workspace:
        """Return the workspace of this (valid) name; it hydrates when it is first used.

        Raises:
            TooMany: a new workspace beyond the limit.
            ShuttingDown: the daemon is going down.
        """
        if self._is_closing:
            raise ShuttingDown
        if (known := self._workspaces.get(name)) is not None:
            return known
        if len(self._workspaces) >= self._settings.max_workspaces and not self._make_room():
            raise TooMany("workspaces", limit=self._settings.max_workspaces, setting="PLURNK_MAX_WORKSPACES")
        made = self._workspaces[name] = Workspace(
            name,
            settings=self._settings,
            defaults=self._defaults,
            store=self._store,
            connector=self._connector,
            places=self._places,
            begin=self._begin,
        )
        return made

    @property
    def count(self) -> int:
        """How many workspaces there are in memory."""
        return len(self._workspaces)

    @property
    def pending_count(self) -> int:
        """How many sign-ins are pending, over all workspaces."""
        return self._places.count

    async def names(self) -> list[str]:
        """Return the names of the workspaces that are stored or in use, sorted.

        Raises:
            StoreUnavailable: the database could not be read.
        """
        return sorted({*await self._store.workspaces(), *self._workspaces})

    async def shut_down(self) -> None:
        """Close every connection of every workspace, all attempted, and end the owners."""
        self._is_closing = True
        async with anyio.create_task_group() as closing:
            for workspace in self._workspaces.values():
                closing.start_soon(workspace.shut_down)
        self._stop.set()

    async def _begin(self, owner: Owner) -> None:
        if self._group is None or self._is_closing:
            raise ShuttingDown
        await self._group.start(owner.run)

    def _make_room(self) -> bool:
        """Forget one workspace that holds nothing and nobody uses; return whether there was one."""
        for workspace in self._workspaces.values():
            if workspace.is_at_rest:
                self._forget(workspace)
                return True
        return False

    def _forget(self, workspace: Workspace) -> None:
        del self._workspaces[workspace.name]
        self._kept.forget(workspace)
        if self._group is not None:
            self._group.start_soon(workspace.shut_down)

    async def _retire_idle(self) -> None:
        idle_ms = self._settings.workspace_idle_ms
        while True:
            await anyio.sleep(idle_ms / 1000 / SWEEPS_PER_IDLE)
            for workspace in list(self._workspaces.values()):
                if workspace.idle_ms() < idle_ms:
                    continue
                if workspace.is_at_rest:
                    if not (workspace.pending.is_remembering or self._kept.is_kept(workspace)):
                        self._forget(workspace)
                elif workspace.hydration.is_done:
                    log.info("workspace-idle", workspace=workspace.name)
                    workspace.owner.start(workspace.go_idle, idle_ms)

    async def _hydrate_stored(self) -> None:
        limiter = anyio.CapacityLimiter(EAGER_AT_ONCE)
        names: list[str] = []
        with _failing_alone():
            names = await self._store.workspaces()
        async with anyio.create_task_group() as hydrating:
            for name in names:
                hydrating.start_soon(self._hydrate_one, name, limiter)

    async def _hydrate_one(self, name: str, limiter: anyio.CapacityLimiter) -> None:
        async with limiter:
            with _failing_alone(workspace=name):
                workspace = self.workspace(name)
                with workspace.in_use():
                    await workspace.ready()


@contextmanager
def _failing_alone(**where: str) -> Generator[None]:
    """Log what the block raises: an eager start that fails is still a start, and one workspace is not its siblings."""
    try:
        yield
    except Problem as problem:
        log.warning("eager-hydration-failed", code=problem.code, **where)
    except Exception:
        log.exception("eager-hydration-failed", **where)
