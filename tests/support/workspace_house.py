"""A manager over a real database and real connections to scripted peers, and the actions as a door runs them."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from app.actions.action import Done, Host
from app.actions.perform import perform
from app.connections.connector import Connector
from app.core.attachments import AttachmentRecord
from app.core.audit import AuditRow
from app.core.connection_state import ConnectionState
from app.core.definitions import parse_definition
from app.core.events import RunEvent
from app.core.masking import Mask
from app.core.principal import Principal
from app.operations.board import Boards
from app.ports import Connection, Target
from app.settings import Settings
from app.store.sql_store import SqlStore, open_store
from app.workspaces.manager import WorkspaceManager
from app.workspaces.workspace import Workspace
from tests.support.scripted_http import ScriptedHttp


class WatchedStore:
    """The real store with gates before and after each write, to stop a commit where the test wants it."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.before_write: anyio.Event | None = None
        self.after_write: anyio.Event | None = None
        self.writing = anyio.Event()
        self.written = anyio.Event()
        self.failure: Exception | None = None
        self.writes = 0

    async def load(self, workspace: str) -> Mapping[str, AttachmentRecord]:
        return await self._store.load(workspace)

    async def apply(
        self, workspace: str, name: str, record: AttachmentRecord | None, row: AuditRow | None = None
    ) -> None:
        self.writing.set()
        if self.before_write is not None:
            await self.before_write.wait()
        if self.failure is not None:
            raise self.failure
        await self._store.apply(workspace, name, record, row)
        self.writes += 1
        self.written.set()
        if self.after_write is not None:
            await self.after_write.wait()

    async def workspaces(self) -> list[str]:
        return await self._store.workspaces()

    async def record(self, row: AuditRow) -> None:
        await self._store.record(row)

    async def audit_rows(self, *, limit: int = 100, workspace: str | None = None) -> list[AuditRow]:
        return await self._store.audit_rows(limit=limit, workspace=workspace)


class WatchedConnector:
    """The real connector, remembering what it opened."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self.opened: list[Connection] = []

    async def open(
        self, target: Target, group: TaskGroup, on_change: Callable[[Connection], None]
    ) -> Connection:
        connection = await self._connector.open(target, group, on_change)
        self.opened.append(connection)
        return connection

    async def close(self) -> None:
        await self._connector.close()

    def unretired(self) -> list[Connection]:
        """Return the connections that nobody closed."""
        return [each for each in self.opened if each.state is not ConnectionState.CLOSED]


@dataclass
class WorkspaceHouse:
    """What a test of workspaces looks at."""

    host: Host
    manager: WorkspaceManager
    store: WatchedStore
    connector: WatchedConnector
    mask: Mask
    events: list[RunEvent] = field(default_factory=list[RunEvent])

    def workspace(self, name: str = "w") -> Workspace:
        return self.manager.workspace(name)

    async def act(self, kind: str, workspace: str = "w", **members: Any) -> dict[str, Any]:
        """Perform an action as the operator; its result, or its Problem raised."""
        outcome = await perform(
            self.host,
            Principal(),
            workspace,
            {"kind": f"workspace.mcp.{kind}", **members},
            observe=self.events.append,
        )
        assert isinstance(outcome, Done)
        return dict(outcome.result)

    async def listed(self, workspace: str = "w") -> dict[str, dict[str, Any]]:
        """Return the summaries of the workspace's servers by name."""
        servers: Any = (await self.act("list", workspace))["servers"]
        return {server["name"]: server for server in servers}

    async def rows(self, workspace: str = "w") -> dict[str, AttachmentRecord]:
        """Return what is durable."""
        return dict(await self.store.load(workspace))


def http(peer: ScriptedHttp, name: str = "p", **members: Any) -> dict[str, Any]:
    """Return the definition of a scripted peer."""
    return {"name": name, "transport": "http", "url": peer.url, **members}


@asynccontextmanager
async def workspace_house(
    tmp_path: Path,
    *,
    defaults: Mapping[str, Mapping[str, Any]] | None = None,
    environment: Mapping[str, str] | None = None,
    kept_s: float = 600.0,
) -> AsyncGenerator[WorkspaceHouse]:
    """Run the daemon's middle on a database in ``tmp_path``; enter it again to restart."""
    variables = dict(environment or {})
    settings = Settings.from_environment(variables)
    mask = Mask()
    connector = WatchedConnector(Connector(settings, variables, mask))
    async with open_store(tmp_path / "plurnk.db") as sql_store, anyio.create_task_group() as group:
        store, boards = WatchedStore(sql_store), Boards(settings, kept_s=kept_s)
        manager = WorkspaceManager(
            settings=settings,
            defaults={name: parse_definition(dict(value)) for name, value in (defaults or {}).items()},
            store=store,
            connector=connector,
            kept=boards,
        )
        await group.start(manager.run)
        try:
            yield WorkspaceHouse(Host(settings, manager, boards, store), manager, store, connector, mask)
        finally:
            with anyio.CancelScope(shield=True):
                boards.shut_down()
                await manager.shut_down()
                await connector.close()
