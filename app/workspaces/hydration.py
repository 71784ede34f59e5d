"""Hydration: open every effective server at once, publish one complete snapshot or none. SPEC §hydration.

One run at a time, in the workspace's own group, under the commit lock, shared by every first user: a client that
leaves never cancels it. ``strict`` fails as a whole; ``isolate`` publishes what failed as unavailable and tries again,
and lets the others serve while the slow ones are still preparing.
"""

import random
import uuid
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum, auto
from typing import TYPE_CHECKING, TypeAlias

import anyio
import structlog

from app.core.connection_state import ConnectionState
from app.core.effective import EffectiveServer
from app.core.oauth_problems import sign_in_required
from app.core.problem import Problem, Stage
from app.core.problems import Internal, ServerNotConnected, ShuttingDown
from app.core.snapshot import ServerSnapshot, ServerState
from app.ports import AuthorizationDemanded, Connection, Target
from app.workspaces.publication import lost, published_server, state_of, unavailable

if TYPE_CHECKING:
    from app.workspaces.workspace import Workspace

log = structlog.get_logger("plurnk.hydration")

Servers: TypeAlias = dict[str, ServerSnapshot[Connection]]
BACK_OFF_FIRST_S = 1.0
BACK_OFF_MAX_S = 60.0
PATIENCE_S = 0.2
"""How long ``isolate`` waits for the slowest servers before the others serve without them."""


class Phase(Enum):
    """Where the hydration of a workspace stands."""

    NONE = auto()
    RUNNING = auto()
    HYDRATED = auto()
    FAILED = auto()


class Hydration:
    """The hydration of one workspace, over and over."""

    def __init__(self, workspace: "Workspace") -> None:
        self._workspace = workspace
        self._phase = Phase.NONE
        self._finished = anyio.Event()
        self._failures = 0
        self._due = 0.0
        self._load_problem: Problem | None = None
        self._epoch = 0
        self._scope: anyio.CancelScope | None = None
        self.late: dict[str, anyio.Event] = {}
        """The servers that the workspace was hydrated without, each with the event of its arrival."""

    @property
    def is_running(self) -> bool:
        """Whether a run is under way."""
        return self._phase is Phase.RUNNING

    @property
    def is_done(self) -> bool:
        """Whether the snapshot is complete, so that a use need not wait."""
        return self._phase is Phase.HYDRATED

    async def ensure(self) -> None:
        """Return once the workspace is hydrated, or has failed to be and is not due to try again.

        Raises:
            StoreUnavailable: the workspace's map could not be read.
            ShuttingDown: the daemon is going down.
        """
        await self._workspace.owner.be()
        if self._phase is Phase.NONE or (self._phase is Phase.FAILED and anyio.current_time() >= self._due):
            self._start()
        while self._phase is Phase.RUNNING:
            await self._finished.wait()
        if self._phase is Phase.FAILED and self._load_problem is not None:
            raise self._load_problem.again()

    def changed(self, name: str) -> None:
        """Hydrate the rest of a failed workspace after a change of one server was committed."""
        if self._phase is Phase.FAILED and self._workspace.owner.is_alive:
            log.debug("hydration-follows-change", workspace=self._workspace.name, server=name)
            self._start()

    def forget(self) -> None:
        """Let the next use hydrate again, and end every retry."""
        self._epoch += 1
        self._phase = Phase.NONE

    def cancel(self) -> None:
        """End a running hydration; whoever waits for it learns that the daemon is going down."""
        self._epoch += 1
        if self._scope is not None:
            self._scope.cancel()

    def _start(self) -> None:
        self._phase = Phase.RUNNING
        self._finished = anyio.Event()
        if not self._workspace.owner.start(self._run):
            self._phase = Phase.NONE
            raise ShuttingDown

    async def _run(self) -> None:
        problem: Problem | None = ShuttingDown()
        try:
            with anyio.CancelScope() as self._scope:
                async with self._workspace.committing():
                    await self._hydrate()
                problem = None
        except Problem as raised:
            problem = raised.again()
        except Exception:
            trace = uuid.uuid4().hex
            log.exception("hydration-failed", workspace=self._workspace.name, trace=trace)
            problem = Internal(trace)
        finally:
            self._scope = None
            if self._phase is Phase.RUNNING:
                self._fail(load_problem=problem)
            self._finished.set()

    async def _hydrate(self) -> None:
        """Publish the whole workspace, or every server's Problem; where it failed the phase stays RUNNING."""
        workspace = self._workspace
        workspace.effective.load(await workspace.store.load(workspace.name))
        kept, wanted = self._kept(), list(workspace.effective.servers.values())
        wanted = [each for each in wanted if each.name not in kept]
        for each in workspace.snapshot.servers.values():
            if each.name not in kept:
                workspace.retire(each)
        workspace.show_all({each.name: _preparing(each) for each in wanted} | kept)
        is_strict = workspace.settings.hydration == "strict"
        opened = await (self._open_all(wanted) if is_strict else self._open_patiently(wanted))
        # Since they were opened, and since the kept ones were looked at, some may have been lost.
        servers = {name: self._still(each) for name, each in opened.items()}
        servers |= {name: workspace.snapshot.servers[name] for name in kept}
        broken = [each for each in servers.values() if _is_broken(each)]
        if broken and is_strict:
            await self._fail_whole(servers, broken[0])
            return
        self._phase, self._failures = Phase.HYDRATED, 0
        workspace.show_all(dict(sorted(servers.items())))
        for each in broken:
            # One that was kept and lost comes back by itself.
            if each.definition is not None and each.published is None:
                workspace.owner.start(self._retry, each.name, workspace.generation(each.name), self._epoch)

    def _kept(self) -> Servers:
        """Return the servers that a change connected since the last hydration, by name."""
        effective = self._workspace.effective.servers
        servers = self._workspace.snapshot.servers.values()
        return {each.name: each for each in servers if each.is_connected and each.name in effective}

    def _still(self, server: ServerSnapshot[Connection]) -> ServerSnapshot[Connection]:
        """Return the server, or the unavailable one where its connection was lost since it was opened."""
        connection = server.published.connection if server.published else None
        if connection is None or server.definition is None or connection.state is ConnectionState.READY:
            return server
        self._workspace.retire(server)
        return replace(unavailable(server, lost(server.definition, connection)), state=state_of(connection))

    async def _open_all(self, wanted: list[EffectiveServer]) -> Servers:
        opened: Servers = {}
        try:
            async with anyio.create_task_group() as opening:
                for server in wanted:
                    opening.start_soon(self._open_one, server, opened)
        except BaseException:
            await self._close_all(opened)
            raise
        return opened

    async def _open_patiently(self, wanted: list[EffectiveServer]) -> Servers:
        """Return what was opened within the patience; the others are shown as preparing and come by themselves."""
        opened: Servers = {}
        late: dict[str, anyio.Event] = {}
        complete, is_over, epoch = anyio.Event(), False, self._epoch

        async def open_one(server: EffectiveServer, generation: int) -> None:
            try:
                found = await self._opened(server)
                if not is_over:
                    opened[server.name] = found
                    if len(opened) == len(wanted):
                        complete.set()
                    return
                is_settled = await self._take(found, generation, epoch)
            finally:
                if server.name in late:
                    late.pop(server.name).set()
            if not is_settled:
                await self._retry(server.name, generation, epoch)

        try:
            try:
                for server in wanted:
                    self._workspace.owner.start(open_one, server, self._workspace.generation(server.name))
                with anyio.move_on_after(PATIENCE_S if wanted else 0):
                    await complete.wait()
            finally:
                # Before anything else is awaited: what arrives from now on is not among what was opened.
                is_over = True
                late |= {each.name: anyio.Event() for each in wanted if each.name not in opened}
                self.late = late
        except BaseException:
            await self._close_all(opened)
            raise
        return opened | {each.name: _preparing(each) for each in wanted if each.name in late}

    async def _open_one(self, server: EffectiveServer, opened: Servers) -> None:
        opened[server.name] = await self._opened(server)

    async def _opened(self, server: EffectiveServer) -> ServerSnapshot[Connection]:
        """Return the connected server, or the unavailable one with its own Problem."""
        if server.definition is None:
            return _unavailable(server, server.problem)
        workspace = self._workspace
        target = Target(
            workspace=workspace.name,
            definition=server.definition,
            source=server.source,
            is_explicit=False,
            authorization=workspace.grants.of(server.definition),
        )
        try:
            connection = await workspace.open(target)
            try:
                return published_server(connection, server.definition, server.source, workspace.settings)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await connection.retire()
                raise
        except AuthorizationDemanded:
            shown = _unavailable(server, sign_in_required(server.name))
            return replace(shown, state=ServerState.AUTHORIZATION_REQUIRED)
        except Problem as problem:
            return _unavailable(server, problem)
        except Exception:
            trace = uuid.uuid4().hex
            log.exception("open-failed", workspace=workspace.name, server=server.name, trace=trace)
            return _unavailable(server, Internal(trace))

    async def _fail_whole(self, servers: Servers, culprit: ServerSnapshot[Connection]) -> None:
        """Publish every effective server with its own Problem, and close what was acquired."""
        cause = culprit.problem.document(Stage.MANAGEMENT) if culprit.problem else None
        failed = {
            name: server
            if server.published is None
            else unavailable(server, ServerNotConnected(name, cause=cause))
            for name, server in sorted(servers.items())
        }
        self._workspace.show_all(failed)
        await self._close_all(servers)

    async def _close_all(self, servers: Mapping[str, ServerSnapshot[Connection]]) -> None:
        with anyio.CancelScope(shield=True):
            await self._workspace.retirements.close(
                each.published.connection for each in servers.values() if each.published is not None
            )

    def _fail(self, *, load_problem: Problem | None) -> None:
        self._phase = Phase.FAILED
        self._load_problem = load_problem
        self._due = anyio.current_time() + back_off_s(self._failures)
        self._failures += 1

    async def _retry(self, name: str, generation: int, epoch: int) -> None:
        """Try an unavailable server again until it is there, or somebody changed it. ``isolate`` only."""
        attempt = 0
        while True:
            await anyio.sleep(back_off_s(attempt))
            attempt += 1
            if self._is_stale(name, generation, epoch):
                return
            server = await self._opened(self._workspace.effective.servers[name])
            if await self._take(server, generation, epoch):
                return

    async def _take(self, server: ServerSnapshot[Connection], generation: int, epoch: int) -> bool:
        """Publish what a retry opened; return whether the retrying is over."""
        workspace, is_taken = self._workspace, False
        try:
            async with workspace.committing(), workspace.gate(server.name).quiet():
                if self._is_stale(server.name, generation, epoch):
                    return True
                shown = self._still(server)
                workspace.show(server.name, shown)
                is_taken = True
                return not _is_broken(shown)
        except Problem:  # Busy, or closing.
            return self._is_stale(server.name, generation, epoch)
        finally:
            if not is_taken:
                await self._close_all({server.name: server})

    def _is_stale(self, name: str, generation: int, epoch: int) -> bool:
        return (
            epoch != self._epoch
            or generation != self._workspace.generation(name)
            or name not in self._workspace.effective.servers
        )


def back_off_s(attempt: int) -> float:
    """Return the seconds to wait before trying again: 1 doubling to 60, with jitter upwards, at most 60."""
    wait = BACK_OFF_FIRST_S * 2.0 ** min(attempt, 10)
    return min(BACK_OFF_MAX_S, wait * random.uniform(1.0, 1.5))  # noqa: S311 spreads load, hides nothing


def _is_broken(server: ServerSnapshot[Connection]) -> bool:
    """Return whether the server fails its hydration; one that waits for a person does not."""
    is_well = server.is_connected or server.state is ServerState.AUTHORIZATION_REQUIRED
    return server.problem is not None and not is_well


def _preparing(server: EffectiveServer) -> ServerSnapshot[Connection]:
    return ServerSnapshot(
        name=server.name, source=server.source, state=ServerState.PREPARING, definition=server.definition
    )


def _unavailable(server: EffectiveServer, problem: Problem | None) -> ServerSnapshot[Connection]:
    return ServerSnapshot(
        name=server.name,
        source=server.source,
        state=ServerState.UNAVAILABLE,
        definition=server.definition,
        problem=problem.again() if problem else None,
    )
