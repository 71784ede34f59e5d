"""From a connection to the snapshot of its server: policy, then one value. SPEC §policy, §prepare, §watch."""

from dataclasses import replace

from app.core.connection_state import ConnectionState
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.policy import admit
from app.core.problem import Problem
from app.core.problems import CatalogInvalid, ServerUnavailable
from app.core.snapshot import Published, ServerSnapshot, ServerState
from app.ports import Connection, Source
from app.settings import Settings


def published_server(
    connection: Connection, definition: StdioDefinition | HttpDefinition, source: Source, settings: Settings
) -> ServerSnapshot[Connection]:
    """Return the connected server that this connection's current catalog makes.

    Raises:
        CatalogInvalid: the catalog breaks the definition's policy.
    """
    admitted = admit(
        connection.catalog,
        definition,
        max_schema_depth=settings.max_schema_depth,
        max_schema_nodes=settings.max_schema_nodes,
    )
    return ServerSnapshot(
        name=definition.name,
        source=source,
        state=ServerState.CONNECTED,
        definition=definition,
        published=Published(
            connection=connection,
            catalog=connection.catalog,
            registry=admitted.registry,
            withheld=admitted.withheld,
            is_live=connection.is_live,
        ),
    )


def reported(
    server: ServerSnapshot[Connection], connection: Connection, settings: Settings
) -> ServerSnapshot[Connection]:
    """Return what a published server is now that its connection reports; pure but for reading that.

    A connection that is well keeps serving what was published where its newest catalog breaks policy or could not be
    had, and says so.
    """
    if server.definition is None or server.published is None:
        return server
    published, is_ready = server.published, connection.state is ConnectionState.READY
    is_as_listed = connection.catalog is published.catalog and published.is_live is connection.is_live
    if (
        is_ready
        and is_as_listed
        and connection.problem is None
        and server.is_connected
        and server.problem is None
    ):
        return server
    if published.is_live is not connection.is_live:
        published = replace(published, is_live=connection.is_live)
    shown = replace(server, published=published)
    if connection.state is not ConnectionState.READY:
        return replace(shown, state=state_of(connection), problem=connection.problem)
    if connection.problem is not None:
        return refused(shown, connection.problem)
    if connection.catalog is published.catalog:
        return replace(shown, state=ServerState.CONNECTED, problem=None)
    try:
        return published_server(connection, server.definition, server.source, settings)
    except CatalogInvalid as problem:
        return refused(shown, problem.again())


def refused(server: ServerSnapshot[Connection], problem: Problem) -> ServerSnapshot[Connection]:
    """Return the server whose connection is well and whose newest catalog was not taken: the old one stays."""
    return replace(server, state=ServerState.CONNECTED, problem=problem)


def state_of(connection: Connection) -> ServerState:
    """Return how a server is shown whose connection is not READY: its catalog stays, nothing can be called."""
    match connection.state:
        case ConnectionState.AUTHORIZATION_REQUIRED:
            return ServerState.AUTHORIZATION_REQUIRED
        case ConnectionState.PREPARING:
            return ServerState.PREPARING
        case _:
            return ServerState.UNAVAILABLE


def unavailable(server: ServerSnapshot[Connection], problem: Problem | None) -> ServerSnapshot[Connection]:
    """Return the server without a connection."""
    return replace(server, state=ServerState.UNAVAILABLE, published=None, problem=problem)


def lost(definition: StdioDefinition | HttpDefinition, connection: Connection) -> Problem:
    """Return why the connection, which was prepared and is not ready any more, cannot be published."""
    if connection.problem is not None:
        return connection.problem.again()
    return ServerUnavailable(definition.name, definition.transport, "it ended right after it was prepared")
