"""Workspace: the one authority on what its servers are, now. SPEC §lifecycle, §hydration.

Owns the current snapshot, the gates, the generations and the task group its connections live in. The protocol that
changes it is ``change``; bringing it to life is ``hydration``.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import MappingProxyType

import anyio
import structlog
from anyio.abc import TaskGroup, TaskStatus

from app.core.connection_state import ConnectionState
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.problem import Stage
from app.core.problems import (
    ServerChanged,
    ServerExists,
    ServerNotConnected,
    ServerNotFound,
    ServerUnavailable,
    ShuttingDown,
    TooMany,
)
from app.core.snapshot import ServerSnapshot, WorkspaceSnapshot
from app.core.summary import live_entry
from app.ports import Connection, Connector, Store, Target
from app.settings import Settings
from app.workspaces.change import Change
from app.workspaces.effective_set import EffectiveSet
from app.workspaces.hydration import Hydration
from app.workspaces.live_state import LiveState
from app.workspaces.preparations import Preparations
from app.workspaces.publication import published_server, reported
from app.workspaces.quiescence import Gate

log = structlog.get_logger("plurnk.workspace")

EMPTY: WorkspaceSnapshot[Connection] = WorkspaceSnapshot(MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Lease:
    """One operation counted on one server: until ``release`` nobody replaces or detaches it."""

    server: ServerSnapshot[Connection]
    connection: Connection
    operation: str
    _gate: Gate

    def release(self) -> None:
        """Stop counting the operation. Idempotent."""
        self._gate.leave(self.operation)


class Workspace:
    """One named, isolated set of attached servers."""

    def __init__(
        self,
        name: str,
        *,
        settings: Settings,
        defaults: Mapping[str, StdioDefinition | HttpDefinition],
        store: Store,
        connector: Connector,
        start_owner: Callable[["Workspace"], Awaitable[None]],
    ) -> None:
        self.name = name
        self.settings = settings
        self.store = store
        self.state = LiveState(name)
        self.effective = EffectiveSet(defaults)
        self.preparations = Preparations()
        self.snapshot: WorkspaceSnapshot[Connection] = EMPTY
        self.hydration = Hydration(self)
        self._connector = connector
        self._start_owner = start_owner
        self._owning = anyio.Lock()
        self._group: TaskGroup | None = None
        self._stop = anyio.Event()
        self._is_closing = False
        self._commit_lock = anyio.Lock()
        self._gates: dict[str, Gate] = {}
        self._generations: dict[str, int] = {}
        self._users = 0
        self._last_used = anyio.current_time()

    # Life

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Own the workspace's task group until ``shut_down``; nothing in it raises."""
        async with anyio.create_task_group() as group:
            self._group = group
            task_status.started()
            await self._stop.wait()
            group.cancel_scope.cancel()

    @property
    def has_owner(self) -> bool:
        """Whether the workspace was ever brought to life."""
        return self._group is not None

    @property
    def is_watched(self) -> bool:
        """Whether somebody uses it or listens to its state."""
        return self._users > 0 or self.state.has_listeners

    async def own(self) -> None:
        """Return once the workspace has its owner task.

        Raises:
            ShuttingDown: the daemon is going down.
        """
        async with self._owning:
            if self._is_closing:
                raise ShuttingDown
            if self._group is None:
                await self._start_owner(self)

    @property
    def group(self) -> TaskGroup:
        """The group that the workspace's connections and its own tasks live in.

        Raises:
            ShuttingDown: the workspace is closing, or has no owner.
        """
        if self._group is None or self._is_closing:
            raise ShuttingDown
        return self._group

    async def shut_down(self) -> None:
        """Close every connection, all attempted, and end the owner."""
        self._is_closing = True
        self.hydration.cancel()
        async with anyio.create_task_group() as closing:
            for connection in self.connections():
                closing.start_soon(self._retire, connection)
        self._stop.set()

    def connections(self) -> list[Connection]:
        """Return every connection of the current snapshot."""
        return [
            each.published.connection for each in self.snapshot.servers.values() if each.published is not None
        ]

    # Use

    async def ready(self) -> WorkspaceSnapshot[Connection]:
        """Return the snapshot of a hydrated workspace, or of one whose hydration failed and is not due again.

        Raises:
            StoreUnavailable: the workspace's map could not be read.
            ShuttingDown: the daemon is going down.
        """
        self._last_used = anyio.current_time()
        if not self.hydration.is_done:
            await self.hydration.ensure()
        return self.snapshot

    async def lease(self, server: str, operation: str) -> Lease:
        """Return the server's connection with the operation counted on it.

        Raises:
            ServerNotFound: there is no such effective server.
            ServerNotConnected: it cannot serve now; nothing was counted.
        """
        await self.ready()
        if server not in self.snapshot.servers:
            raise ServerNotFound(server)
        gate = self.gate(server)
        await gate.enter(operation)
        try:
            # A workspace that went idle while we waited for the gate hydrates again; being counted, it stays.
            await self.ready()
            return self._leased(server, operation, gate)
        except BaseException:
            gate.leave(operation)
            raise

    def _leased(self, server: str, operation: str, gate: Gate) -> Lease:
        found = self.snapshot.servers.get(server)
        if found is None:
            raise ServerNotFound(server)
        if not found.is_connected or found.published is None:
            cause = found.problem.document(Stage.MANAGEMENT) if found.problem else None
            raise ServerNotConnected(server, cause=cause)
        return Lease(found, found.published.connection, operation, gate)

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Keep the workspace from being idle during the block."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._last_used = anyio.current_time()

    # What the change protocol asks of it

    def gate(self, name: str) -> Gate:
        """Return the gate of the server."""
        return self._gates.setdefault(name, Gate(name))

    def generation(self, name: str) -> int:
        """Return how many changes of the server were committed."""
        return self._generations.get(name, 0)

    async def open(self, target: Target) -> Connection:
        """Return a prepared connection that lives in the workspace's group.

        Raises:
            Problem: as ``Connector.open``.
        """
        return await self._connector.open(target, self.group, self._connection_changed)

    @asynccontextmanager
    async def committing(self) -> AsyncGenerator[None]:
        """Hold the workspace's commit lock, which a running hydration holds too."""
        async with self._commit_lock:
            if self._is_closing:
                raise ShuttingDown
            yield

    def require_no_drift(self, change: Change) -> None:
        """Return where the server is as the change's author saw it.

        Raises:
            ServerExists: an attach, and the name became effective.
            ServerChanged: the server was changed meanwhile.
            TooMany: an attach beyond the limit.
        """
        if change.is_attach and change.name in self.effective.servers:
            raise ServerExists(change.name)
        if change.seen_generation != self.generation(change.name):
            raise ServerChanged(change.name)
        if change.is_attach and len(self.effective.servers) >= self.settings.max_servers:
            raise TooMany(
                "servers in this workspace", limit=self.settings.max_servers, setting="PLURNK_MAX_SERVERS"
            )

    def successor(self, change: Change, candidate: Connection | None) -> ServerSnapshot[Connection] | None:
        """Return what the candidate will be published as, or None for a detach; pure but for reading its state.

        Raises:
            CatalogInvalid: policy refuses its catalog.
            Problem: it was lost since it was prepared.
        """
        if candidate is None or change.definition is None:
            return None
        if candidate.state is not ConnectionState.READY:
            transport = change.definition.transport
            raise candidate.problem or ServerUnavailable(
                change.name, transport, "it ended right after it was prepared"
            )
        return published_server(candidate, change.definition, change.source, self.settings)

    def publish(self, change: Change, successor: ServerSnapshot[Connection] | None) -> anyio.Event:
        """Make a stored change visible, without awaiting; return the event of the old connection being closed."""
        replaced = self.snapshot.servers.get(change.name)
        self._generations[change.name] = self.generation(change.name) + 1
        if change.write is not None:
            self.effective.put(change.name, change.write.record)
        self.show(change.name, successor)
        self.hydration.changed(change.name)
        return self.retire(replaced)

    def show(self, name: str, server: ServerSnapshot[Connection] | None) -> None:
        """Publish one server, or its absence, by one assignment."""
        if server is None:
            self.snapshot = self.snapshot.without_server(name)
            self.state.drop("servers", name)
        else:
            server = self._caught_up(server)
            self.snapshot = self.snapshot.with_server(server)
            self.state.put("servers", name, live_entry(server))

    def show_all(self, servers: Mapping[str, ServerSnapshot[Connection]]) -> None:
        """Publish a whole snapshot by one assignment."""
        servers = {name: self._caught_up(server) for name, server in servers.items()}
        gone = self.snapshot.servers.keys() - servers.keys()
        self.snapshot = WorkspaceSnapshot(MappingProxyType(dict(servers)))
        with self.state.one_change():
            for name in gone:
                self.state.drop("servers", name)
            for name, server in servers.items():
                self.state.put("servers", name, live_entry(server))

    def retire(self, server: ServerSnapshot[Connection] | None) -> anyio.Event:
        """Close the connection of a server in the workspace's group; return the event of it being closed."""
        done = anyio.Event()
        if server is None or server.published is None or self._group is None:
            done.set()
            return done
        self._group.start_soon(self._retire_then, server.published.connection, done.set)
        return done

    async def _retire_then(self, connection: Connection, then: Callable[[], None]) -> None:
        try:
            await self._retire(connection)
        finally:
            then()

    async def _retire(self, connection: Connection) -> None:
        if failure := await connection.retire():
            log.warning("close-failed", workspace=self.name, server=connection.server, reason=failure)

    # What connections report

    def _connection_changed(self, connection: Connection) -> None:
        """Show a published connection's new state or catalog; a candidate's is looked at when it commits."""
        server = self.snapshot.servers.get(connection.server)
        if server is None or server.published is None or server.published.connection is not connection:
            return
        self.show(server.name, server)
        problem = self.snapshot.servers[server.name].problem
        if problem is not None and connection.state is ConnectionState.READY:
            # The connection is well, its newest catalog was not taken: the old one stays and says so.
            log.warning("catalog-refused", workspace=self.name, server=server.name, code=problem.code)

    def _caught_up(self, server: ServerSnapshot[Connection]) -> ServerSnapshot[Connection]:
        """Return the server as its connection is at this moment, which may have reported while nobody heard it."""
        if server.published is None:
            return server
        return reported(server, server.published.connection, self.settings)

    # Idleness

    def idle_ms(self) -> float:
        """Return how long nobody has used the workspace, in ms; 0 while it is in use."""
        busy = self._users or len(self.preparations) or any(gate.operations for gate in self._gates.values())
        return 0.0 if busy or self.hydration.is_running else (anyio.current_time() - self._last_used) * 1000

    async def go_idle(self, after_ms: int) -> None:
        """Retire every connection where nobody used the workspace for so long; the next use hydrates again."""
        async with self._commit_lock:
            if self._is_closing or not self.hydration.is_done or self.idle_ms() < after_ms:
                return
            retired = list(self.snapshot.servers.values())
            self.hydration.forget()
            self.show_all({})
        for server in retired:
            await self.retire(server).wait()
