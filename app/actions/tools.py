"""``workspace.mcp.tools``: the exact registry, out of the snapshot, without a request. SPEC §actions."""

from functools import lru_cache

import orjson

from app.actions.action import Action, ActionOutcome, Done, Params, Run
from app.core.json_value import Json, JsonObject
from app.core.names import parse_server_name
from app.core.policy import Effect, Tool
from app.core.tool_view import VIEWS_KEPT, tool_view
from app.operations.servers import published_server


class ToolsParams(Params):
    """Whose tools, and whether with their schemas."""

    server: str | None = None
    schemas: bool = False


async def _run(run: Run, params: ToolsParams) -> ActionOutcome:
    snapshot = await run.workspace.ready()
    if params.server is not None:
        name = parse_server_name(params.server, field="server")
        published = {name: published_server(snapshot, name)}
    else:
        published = {name: server.published for name, server in sorted(snapshot.servers.items())}
    tools: list[Json] = [
        _with_schemas(name, tool) if params.schemas else _row(name, tool)
        for name, each in published.items()
        if each is not None
        for tool in each.registry.tools.values()
    ]
    return Done({"tools": tools})


def _row(server: str, tool: Tool) -> JsonObject:
    return _row_of(server, tool.name, tool.effect, tool.raw)


@lru_cache(maxsize=VIEWS_KEPT)
def _row_of(server: str, name: str, effect: Effect, raw: bytes) -> JsonObject:
    """Return one row; shared by every answer, so nobody changes it."""
    view = tool_view(raw)
    required: list[Json] = list(view.required)
    return {
        "server": server,
        "tool": name,
        "effect": str(effect),
        "description": view.description,
        "required": required,
        "signature": view.signature,
    }


def _with_schemas(server: str, tool: Tool) -> JsonObject:
    """Return the row with the schemas as the server sent them; not kept: they are large and seldom asked."""
    view = tool_view(tool.raw)
    row = _row(server, tool) | {"inputSchema": orjson.loads(view.input_schema)}
    return row if view.output_schema is None else row | {"outputSchema": orjson.loads(view.output_schema)}


ACTION = Action(
    kind="workspace.mcp.tools",
    params=ToolsParams,
    run=_run,
    summary="List every enabled tool with its effect and signature, on request with its exact schemas.",
)
