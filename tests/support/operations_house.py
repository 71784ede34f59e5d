"""A workspace, its board and gated peers, wired as the daemon does; peers answer when the test says so."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from app.core.attachments import Attached, Detached
from app.core.catalog import ServerCatalog
from app.core.definitions import HttpDefinition, StdioDefinition, parse_definition
from app.core.events import RunEvent
from app.core.telemetry import Telemetry
from app.operations.board import Board, Boards
from app.settings import Settings
from app.store.sql_store import SqlStore
from app.workspaces.change import Change, Write, change_server
from app.workspaces.manager import WorkspaceManager
from app.workspaces.workspace import Workspace
from tests.support.gated_connection import GatedConnection, GatedConnector
from tests.support.temporary_store import temporary_store


@dataclass
class OperationsHouse:
    """What a test of operations looks at."""

    settings: Settings
    connector: GatedConnector
    manager: WorkspaceManager
    store: SqlStore
    boards: Boards
    workspace: Workspace
    telemetry: Telemetry
    events: list[RunEvent] = field(default_factory=list[RunEvent])

    @property
    def board(self) -> Board:
        """The workspace's board."""
        return self.boards.of(self.workspace)

    @property
    def peer(self) -> GatedConnection:
        """The connection that was opened last."""
        return self.connector.opened[-1]

    def state(self, section: str) -> Any:
        """Return one section of the live state."""
        return self.workspace.state.snapshot()[section]

    def leases(self, server: str = "p") -> tuple[str, ...]:
        """Return the operations that keep the server busy."""
        return self.workspace.gate(server).operations

    async def replace(self, name: str, catalog: ServerCatalog, members: Mapping[str, Any]) -> None:
        """Replace the server by one of this catalog and definition, as ``workspace.mcp.replace`` does."""
        self.connector.catalogs[name] = catalog
        await self.change(name, stdio(name, members), Write(Attached("{}")))

    async def detach(self, name: str) -> None:
        """Detach the server."""
        await self.change(name, None, Write(Detached()))

    async def change(
        self, name: str, definition: StdioDefinition | HttpDefinition | None, write: Write
    ) -> None:
        """Run the change protocol."""
        seen = self.workspace.generation(name)
        change = Change(
            name=name,
            action="test",
            definition=definition,
            source="workspace",
            write=write,
            seen_generation=seen,
        )
        await change_server(self.workspace, change, lambda _: None)


def stdio(name: str, members: Mapping[str, Any]) -> StdioDefinition | HttpDefinition:
    """Return a stdio definition with these members besides the required ones, or what ``members`` is whole."""
    whole = {"name": name, "transport": "stdio", "command": "/peer", **members}
    return parse_definition(dict(members) if "transport" in members else whole)


@asynccontextmanager
async def operations_house(
    catalogs: Mapping[str, ServerCatalog],
    *,
    environment: Mapping[str, str] | None = None,
    definitions: Mapping[str, Mapping[str, Any]] | None = None,
    kept_s: float = 600.0,
    is_hydrated: bool = True,
) -> AsyncGenerator[OperationsHouse]:
    """Run a manager with one workspace whose service defaults are servers of these catalogs.

    ``definitions`` gives members of a server's definition, for example ``read``.
    """
    defaults = {name: stdio(name, (definitions or {}).get(name, {})) for name in catalogs}
    settings = Settings.from_environment(environment or {})
    connector = GatedConnector(dict(catalogs))
    async with temporary_store() as store, anyio.create_task_group() as group:
        telemetry = Telemetry()
        boards = Boards(settings, kept_s=kept_s, telemetry=telemetry)
        manager = WorkspaceManager(
            settings=settings, defaults=defaults, store=store, connector=connector, kept=boards
        )
        await group.start(manager.run)
        workspace = manager.workspace("w")
        if is_hydrated:
            await workspace.ready()
        yield OperationsHouse(settings, connector, manager, store, boards, workspace, telemetry)
        boards.shut_down()
        await manager.shut_down()
