"""From a connection to the snapshot of its server: policy, then one value. SPEC §policy, §prepare, §watch."""

from dataclasses import replace

from app.core.connection_state import ConnectionState
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.policy import admit
from app.core.problem import Problem
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
    if connection.state is not ConnectionState.READY:
        return replace(server, state=ServerState.UNAVAILABLE, problem=connection.problem)
    published = server.published
    if published.is_live is not connection.is_live:
        published = replace(published, is_live=connection.is_live)
    connected = replace(server, state=ServerState.CONNECTED, published=published, problem=connection.problem)
    if connection.catalog is server.published.catalog or connection.problem is not None:
        return connected
    try:
        return published_server(connection, server.definition, server.source, settings)
    except Problem as problem:
        return replace(connected, problem=problem)
