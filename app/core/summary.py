"""How a server is shown: the whole summary of ``list``, and the small entry of the live state. SPEC §actions, §agui.

Shows names, counts and states; no argument, header, environment or expanded value of a definition.
"""

from typing import TypeVar

from app.core.json_value import Json, JsonObject
from app.core.problem import Stage
from app.core.snapshot import Published, ServerSnapshot

ConnectionT = TypeVar("ConnectionT")


def summary(server: ServerSnapshot[ConnectionT]) -> JsonObject:
    """Return the summary that ``workspace.mcp.list`` and every change answer with."""
    definition, published = server.definition, server.published
    tools = definition.tools if definition else None
    shown: JsonObject = {
        "name": server.name,
        "source": server.source,
        "transport": definition.transport if definition else None,
        "state": str(server.state),
        "enabledTools": None if tools is None else list(tools),
        "read": list(definition.read) if definition else [],
        "withheld": [{"name": each.name, "reason": each.reason} for each in published.withheld]
        if published
        else [],
    }
    if definition is None:
        del shown["transport"]
    if published is not None and server.is_connected:
        shown.update(_offered(published))
    if server.problem is not None:
        shown["problem"] = server.problem.document(Stage.MANAGEMENT)
    return shown


def live_entry(server: ServerSnapshot[ConnectionT]) -> JsonObject:
    """Return the entry of ``plurnk.servers`` in the AG-UI state."""
    entry: JsonObject = {"name": server.name, "source": server.source}
    if server.definition is not None:
        entry["transport"] = server.definition.transport
    entry["state"] = str(server.state)
    if server.published is not None and server.is_connected:
        catalog = server.published.catalog
        entry["revision"] = server.published.registry.revision
        entry["tools"] = len(server.published.registry.tools)
        entry["resources"] = len(catalog.resources)
        entry["prompts"] = len(catalog.prompts)
    return entry


def _offered(published: Published[ConnectionT]) -> JsonObject:
    catalog = published.catalog
    names: list[Json] = list(published.registry.tools)
    offered: JsonObject = {
        "protocolVersion": catalog.protocol_version,
        "server": dict(catalog.server_info) if catalog.server_info is not None else None,
        "capabilities": catalog.capabilities,
    }
    if catalog.instructions is not None:
        offered["instructions"] = catalog.instructions
    offered.update(
        {
            "tools": names,
            "resources": len(catalog.resources),
            "resourceTemplates": len(catalog.resource_templates),
            "prompts": len(catalog.prompts),
            "revision": published.registry.revision,
            "live": published.is_live,
        }
    )
    return offered
