"""Workspace: the one authority on what its servers are, now. SPEC §lifecycle, §hydration.

Owns the current snapshot, the gates and the generations. The protocol that changes it is ``change``; bringing it to
life is ``hydration``; its tasks live under its ``owner``.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from types import MappingProxyType

import anyio
from anyio.abc import TaskGroup

from app.concurrency import Bracket, Latch
from app.core.connection_state import ConnectionState
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.problem import Stage
from app.core.problems import (
    ServerChanged,
    ServerExists,
    ServerNotConnected,
    ServerNotFound,
    ShuttingDown,
    TooMany,
)
from app.core.snapshot import ServerSnapshot, WorkspaceSnapshot
from app.core.summary import live_entry
from app.core.value import value
from app.ports import Connection, Connector, Store, Target
from app.settings import Settings
from app.workspaces.change import Change
from app.workspaces.effective_set import EffectiveSet
from app.workspaces.generations import Generations
from app.workspaces.grants import Grants
from app.workspaces.hydration import Hydration
from app.workspaces.live_state import LiveState
from app.workspaces.owner import Owner
from app.workspaces.pending import Pending, Places
from app.workspaces.preparations import Preparations
from app.workspaces.publication import lost, published_server
from app.workspaces.quiescence import Gate
from app.workspaces.reports import Reports
from app.workspaces.retirements import Retirements

EMPTY: WorkspaceSnapshot[Connection] = WorkspaceSnapshot(MappingProxyType({}))
NAMES_KEPT = 64
"""Names of detached servers that a workspace may remember before it looks which of them it can forget."""


@value
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
        places: Places,
        begin: Callable[[Owner], Awaitable[None]],
    ) -> None:
        self.name = name
        self.settings = settings
        self.store = store
        self.state = LiveState(name)
        self.effective = EffectiveSet(defaults)
        self.preparations = Preparations()
        self.pending = Pending(self.state, places)
        self.grants = Grants()
        self.snapshot: WorkspaceSnapshot[Connection] = EMPTY
        self.owner = Owner(name, begin=begin, on_failure=self._begin_again)
        self.retirements = Retirements(name, self.owner)
        self.hydration = Hydration(self)
        self._reports = Reports(self)
        self._connector = connector
        self._is_closing = False
        self._commit_lock = anyio.Lock(fast_acquire=True)
        self._gates: dict[str, Gate] = {}
        self._generations = Generations()
        self._users = 0
        self._last_used = time.monotonic()

    # Life

    @property
    def is_watched(self) -> bool:
        """Whether somebody uses it or listens to its state."""
        return self._users > 0 or self.state.has_listeners

    @property
    def is_at_rest(self) -> bool:
        """Whether it holds nothing and nobody uses it, so that it can be forgotten and made again."""
        is_busy = self.is_watched or self.hydration.is_running or len(self.retirements) or self.connections()
        is_busy = is_busy or len(self.pending) or self.grants.has_token
        return not is_busy and not any(gate.operations for gate in self._gates.values())

    @property
    def group(self) -> TaskGroup:
        """The group that the workspace's connections live in.

        Raises:
            ShuttingDown: the workspace is closing, or has no owner.
        """
        if self._is_closing:
            raise ShuttingDown
        return self.owner.group

    async def shut_down(self) -> None:
        """Close every connection, all attempted, and end the owner.

        A commit that has begun completes first and a hydration closes what it opened; what neither concerns does
        not wait for them.
        """
        self._is_closing = True
        self.pending.clear()
        self.preparations.cancel_all()
        self.hydration.cancel()
        try:
            at_once = self.connections()
            await self.retirements.finish(at_once)
            async with self._commit_lock:
                await self.retirements.finish(each for each in self.connections() if each not in at_once)
        finally:
            self.owner.stop()
        await self.owner.stopped()  # What was being opened closes what it has.

    async def _begin_again(self) -> None:
        """Leave nothing of a group that a bug ended; the next use hydrates again."""
        self.preparations.cancel_all()
        async with self._commit_lock:
            await self.retirements.finish(self._emptied())

    def _emptied(self) -> list[Connection]:
        """Return every connection after publishing none; the next use hydrates again."""
        connections = self.connections()
        self.hydration.forget()
        self.show_all({})
        return connections

    def connections(self) -> list[Connection]:
        """Return every connection of the current snapshot."""
        return [
            each.published.connection for each in self.snapshot.servers.values() if each.published is not None
        ]

    # Use

    async def ready(self, server: str | None = None) -> WorkspaceSnapshot[Connection]:
        """Return the snapshot of a hydrated workspace, or of one whose hydration failed and is not due again.

        Where a server is named and is being prepared still, it is waited for.

        Raises:
            StoreUnavailable: the workspace's map could not be read.
            ShuttingDown: the daemon is going down.
        """
        if not self._users:  # Who uses it notes the time in the end.
            self._last_used = time.monotonic()
        if not self.hydration.is_done:
            await self.hydration.ensure()
        if server in self.hydration.late:
            await self.hydration.late[server].wait()
        return self.snapshot

    async def lease(self, server: str, operation: str) -> Lease:
        """Return the server's connection with the operation counted on it.

        Raises:
            ServerNotFound: there is no such effective server.
            ServerNotConnected: it cannot serve now; nothing was counted.
        """
        if not self.hydration.is_done:
            await self.ready()
        if server not in self.snapshot.servers:
            raise ServerNotFound(server)
        gate = self.gate(server)
        try:
            if not gate.enter_now(operation):
                await gate.enter(operation)
                # A workspace that went idle while we waited hydrates again; being counted, it stays.
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

    def in_use(self) -> AbstractContextManager[None]:
        """Keep the workspace from being idle during the block."""
        return Bracket(self.begin_use, self.end_use)

    def begin_use(self) -> None:
        """Count one more user."""
        self._users += 1

    def end_use(self) -> None:
        """Count one user less."""
        self._users -= 1
        self._last_used = time.monotonic()
        if len(self._gates) > NAMES_KEPT:
            self._forget_names()

    # What the change protocol asks of it

    def gate(self, name: str) -> Gate:
        """Return the gate of the server."""
        gate = self._gates.get(name)
        if gate is None:
            gate = self._gates[name] = Gate(name)
        return gate

    def generation(self, name: str) -> int:
        """Return the number of the last committed change of the server."""
        return self._generations.of(name)

    def _forget_names(self) -> None:
        """Drop what is kept of names that are gone, but of those that a change or an operation is under way for.

        A workspace may be in use for ever: somebody watches it.
        """
        if len(self._gates) <= 2 * len(self.effective.servers) + NAMES_KEPT:
            return
        pending = {each.name for each in self.pending.all()}
        self._gates = {
            name: gate
            for name, gate in self._gates.items()
            if name in self.effective.servers or name in self.preparations or name in pending or gate.is_held
        }
        self._generations.keep(self._gates)

    async def open(self, target: Target) -> Connection:
        """Return a prepared connection that lives in the workspace's group.

        Raises:
            Problem: as ``Connector.open``.
            AuthorizationDemanded: a person has to sign in first.
        """
        return await self._connector.open(target, self.group, self._reports.changed)

    @asynccontextmanager
    async def committing(self) -> AsyncGenerator[None]:
        """Hold the workspace's commit lock, which a running hydration holds too."""
        async with self._commit_lock:
            if self._is_closing:
                raise ShuttingDown
            yield

    async def commits_done(self) -> None:
        """Return once whatever was being committed is published."""
        async with self._commit_lock:
            pass

    def require_no_drift(self, change: Change) -> None:
        """Return where the server is as the change's author saw it.

        Raises:
            ServerExists: an attach, and the name became effective.
            ServerChanged: the server was changed meanwhile.
            TooMany: one more server than the limit.
        """
        if change.is_attach and change.name in self.effective.servers:
            raise ServerExists(change.name)
        if change.seen_generation != self.generation(change.name):
            raise ServerChanged(change.name)
        is_new = change.definition is not None and change.name not in self.effective.servers
        if is_new and len(self.effective.servers) >= self.settings.max_servers:
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
            raise lost(change.definition, candidate)
        return published_server(candidate, change.definition, change.source, self.settings)

    def publish(self, change: Change, successor: ServerSnapshot[Connection] | None) -> Latch | None:
        """Make a stored change visible, without awaiting; return what is set once the old connection is closed, if any.

        Raises nothing: the change is durable.
        """
        replaced = self.snapshot.servers.get(change.name)
        self._generations.advance(change.name)
        if change.write is not None:
            self.effective.put(change.name, change.write.record, change.definition)
        self.show(change.name, successor)
        self.pending.overtake(change.name)
        self.hydration.changed(change.name)
        return self.retire(replaced)

    def show(self, name: str, server: ServerSnapshot[Connection] | None) -> None:
        """Publish one server as its connection is now, or its absence, by one assignment."""
        if server is None:
            self.grants.forget(name)
            self.snapshot = self.snapshot.without_server(name)
            self.state.drop("servers", name)
        else:
            server = self._reports.caught_up(server)
            self._keep_grant(server)
            self.snapshot = self.snapshot.with_server(server)
            self.state.put("servers", name, live_entry(server))

    def show_all(self, servers: Mapping[str, ServerSnapshot[Connection]]) -> None:
        """Publish a whole snapshot by one assignment, each server as its connection is now."""
        servers = {name: self._reports.caught_up(server) for name, server in servers.items()}
        gone = self.snapshot.servers.keys() - servers.keys()
        self.snapshot = WorkspaceSnapshot(MappingProxyType(dict(servers)))
        with self.state.one_change():
            for name in gone:
                self.state.drop("servers", name)
            for name, server in servers.items():
                self._keep_grant(server)
                self.state.put("servers", name, live_entry(server))

    def _keep_grant(self, server: ServerSnapshot[Connection]) -> None:
        """Remember what the server's connection was granted beyond the life of the connection."""
        if server.published is not None and server.definition is not None:
            self.grants.keep(server.definition, server.published.connection.authorization)

    def retire(self, server: ServerSnapshot[Connection] | None) -> Latch | None:
        """Close the connection of a server, if any, in the workspace's group; return what is set once it is closed."""
        if server is not None and server.published is not None:
            return self.retirements.begin(server.published.connection)
        return None

    # Idleness

    def idle_ms(self) -> float:
        """Return how long nobody has used the workspace, in ms; 0 while it is in use."""
        busy = self._users or len(self.preparations) or any(gate.operations for gate in self._gates.values())
        busy = busy or len(self.pending) or self.grants.has_token
        return 0.0 if busy or self.hydration.is_running else (time.monotonic() - self._last_used) * 1000

    async def go_idle(self, after_ms: int) -> None:
        """Retire every connection where nobody used the workspace for so long; the next use hydrates again."""
        async with self._commit_lock:
            if not self._is_closing and self.hydration.is_done and self.idle_ms() >= after_ms:
                for connection in self._emptied():
                    self.retirements.begin(connection)
