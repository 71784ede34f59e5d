"""What published connections report: lost, back, listed anew, watched or not. SPEC §lifecycle, §connection, §watch.

A report is a call without awaiting from the connection's own task; its tools were judged before.
"""

from typing import TYPE_CHECKING

import structlog

from app.core.snapshot import ServerSnapshot
from app.ports import Connection
from app.workspaces.publication import reported

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
            server = self._published_by(connection)
            if server is not None:
                self._workspace.show(server.name, server)
        except Exception:  # A bug of ours must not end the task of the connection that reports.
            log.exception("report-failed", workspace=self._workspace.name, server=connection.server)

    def caught_up(self, server: ServerSnapshot[Connection]) -> ServerSnapshot[Connection]:
        """Return the server as its connection is now, which may have reported while nobody heard it."""
        if server.published is None:
            return server
        workspace, connection = self._workspace, server.published.connection
        try:
            now = reported(server, connection, workspace.settings)
        except Exception:  # A bug of ours must not leave what is durable unpublished.
            log.exception("report-failed", workspace=workspace.name, server=server.name)
            return server
        if now.is_connected and now.problem is not None and now.problem is not server.problem:
            log.warning(
                "catalog-refused", workspace=workspace.name, server=server.name, code=now.problem.code
            )
        return now

    def _published_by(self, connection: Connection) -> ServerSnapshot[Connection] | None:
        server = self._workspace.snapshot.servers.get(connection.server)
        if server is None or server.published is None or server.published.connection is not connection:
            return None
        return server
