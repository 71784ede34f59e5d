"""Finding the server that an operation names in the current snapshot. SPEC §hydration, §problems."""

from app.core.problem import Stage
from app.core.problems import ServerNotConnected, ServerNotFound
from app.core.snapshot import Published, ServerSnapshot, WorkspaceSnapshot
from app.ports import Connection


def published_server(snapshot: WorkspaceSnapshot[Connection], server: str) -> Published[Connection]:
    """Return what the server publishes, also while its lost connection recovers.

    Raises:
        ServerNotFound: there is no such server.
        ServerNotConnected: it was never connected.
    """
    found = _found(snapshot, server)
    if found.published is None:
        raise _not_connected(found)
    return found.published


def connected_server(
    snapshot: WorkspaceSnapshot[Connection], server: str
) -> tuple[ServerSnapshot[Connection], Published[Connection]]:
    """Return the server and what it publishes, where requests can be sent to it.

    Raises:
        ServerNotFound: there is no such server.
        ServerNotConnected: it cannot serve now.
    """
    found = _found(snapshot, server)
    if found.published is None or not found.is_connected:
        raise _not_connected(found)
    return found, found.published


def _found(snapshot: WorkspaceSnapshot[Connection], server: str) -> ServerSnapshot[Connection]:
    found = snapshot.servers.get(server)
    if found is None:
        raise ServerNotFound(server)
    return found


def _not_connected(server: ServerSnapshot[Connection]) -> ServerNotConnected:
    cause = server.problem.document(Stage.MANAGEMENT) if server.problem else None
    return ServerNotConnected(server.name, cause=cause)
