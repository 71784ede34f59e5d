"""From a prepared connection to the snapshot of its server: policy, then one value. SPEC §policy, §prepare."""

from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.policy import admit
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
        ),
    )
