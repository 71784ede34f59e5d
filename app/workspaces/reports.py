"""What published connections report: lost, back, or with another catalog. SPEC §lifecycle, §connection.

A report is a call without awaiting from the connection's own task; its tools were judged before.
"""

from typing import TYPE_CHECKING

import structlog

from app.core.connection_state import ConnectionState
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.problems import CatalogInvalid
from app.core.snapshot import ServerSnapshot
from app.ports import Connection
from app.workspaces.publication import published_server, recovering, refused

if TYPE_CHECKING:
    from app.workspaces.workspace import Workspace

log = structlog.get_logger("plurnk.workspace")


class Reports:
    """Takes the reports of one workspace's connections."""

    def __init__(self, workspace: "Workspace") -> None:
        self._workspace = workspace

    def changed(self, connection: Connection) -> None:
        """Show what the connection is now, where it is published; a candidate's is looked at when it commits."""
        try:
            self._follow(connection)
        except Exception:  # A bug of ours must not end the task of the connection that reports.
            log.exception("report-failed", workspace=self._workspace.name, server=connection.server)

    def _follow(self, connection: Connection) -> None:
        server = self._published_by(connection)
        if server is None or server.definition is None or server.published is None:
            return
        if connection.state is not ConnectionState.READY:
            self._workspace.show(server.name, recovering(server, connection.problem))
        elif connection.catalog is not server.published.catalog or not server.is_connected:
            self._workspace.show(server.name, self._renewed(server, connection, server.definition))

    def _renewed(
        self,
        server: ServerSnapshot[Connection],
        connection: Connection,
        definition: StdioDefinition | HttpDefinition,
    ) -> ServerSnapshot[Connection]:
        workspace = self._workspace
        try:
            return published_server(connection, definition, server.source, workspace.settings)
        except CatalogInvalid as problem:
            log.warning("catalog-refused", workspace=workspace.name, server=server.name, code=problem.code)
            return refused(server, problem)

    def _published_by(self, connection: Connection) -> ServerSnapshot[Connection] | None:
        server = self._workspace.snapshot.servers.get(connection.server)
        if server is None or server.published is None or server.published.connection is not connection:
            return None
        return server
