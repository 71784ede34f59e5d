"""A prepared connection and a definition make one connected server, or policy refuses it."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.core.definitions import parse_definition
from app.core.policy import Effect
from app.core.problems import CatalogInvalid, ServerUnavailable
from app.core.snapshot import ServerState
from app.settings import Settings
from app.workspaces.publication import published_server, reported
from tests.support.gated_connection import GatedConnection, catalog, tool_entry
from tests.support.scripted_http import ECHO, result, scripted_http
from tests.support.workspace_house import http, workspace_house

pytestmark = pytest.mark.spec("policy")


async def test_the_server_has_the_catalog_and_what_policy_admits_of_it(tmp_path: Path) -> None:
    tools = result({"tools": [ECHO, {**ECHO, "name": "get"}, {"name": "bare"}]})
    async with scripted_http({"tools/list": tools}) as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        connection = house.connector.opened[0]
        definition = parse_definition(http(peer, read=["get"]))
        server = published_server(connection, definition, "workspace", Settings())
        assert (server.name, server.source, server.state) == ("p", "workspace", ServerState.CONNECTED)
        assert server.published is not None
        assert server.published.catalog is connection.catalog
        effects = {name: tool.effect for name, tool in server.published.registry.tools.items()}
        assert effects == {"echo": Effect.HOST, "get": Effect.READ}
        assert [each.name for each in server.published.withheld] == ["bare"]
        with pytest.raises(CatalogInvalid):
            published_server(
                connection, parse_definition(http(peer, tools=["absent"])), "workspace", Settings()
            )


@pytest.mark.spec("limits")
@pytest.mark.parametrize(
    "setting, reason",
    [("PLURNK_MAX_SCHEMA_DEPTH", "schema-too-deep"), ("PLURNK_MAX_SCHEMA_NODES", "schema-too-large")],
)
async def test_the_operators_limits_withhold_a_tool(tmp_path: Path, setting: str, reason: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {}}}}}
    tools = result({"tools": [ECHO, {"name": "deep", "inputSchema": schema}]})
    async with (
        scripted_http({"tools/list": tools}) as peer,
        workspace_house(tmp_path, environment={setting: "3"}) as house,
    ):
        attached = await house.act("attach", server=http(peer))
    assert attached["server"]["tools"] == ["echo"]
    assert attached["server"]["withheld"] == [{"name": "deep", "reason": reason}]


@pytest.mark.spec("watch")
async def test_what_a_connection_reports_changes_only_what_it_is_about() -> None:
    old = catalog(tools=[tool_entry("echo")])
    connection = GatedConnection("p", old)
    definition = parse_definition(
        {"name": "p", "transport": "http", "url": "http://p.example/mcp", "tools": ["echo"]}
    )
    server = published_server(connection, definition, "workspace", Settings())
    assert reported(server, connection, Settings()) == server

    connection.is_live = True
    live = reported(server, connection, Settings())
    assert live.published is not None
    assert server.published is not None
    assert live.published == replace(server.published, is_live=True)
    assert live.published.registry is server.published.registry

    unreachable = ServerUnavailable("p", "http", "it was cut")
    connection.problem = unreachable
    kept = reported(live, connection, Settings())
    assert kept == replace(live, problem=unreachable)

    connection.problem, connection.catalog = None, catalog(tools=[tool_entry("other")])
    refused = reported(live, connection, Settings())
    assert refused.published is live.published
    assert (refused.is_connected, type(refused.problem)) == (True, CatalogInvalid)

    connection.problem = unreachable
    assert reported(refused, connection, Settings()).problem is unreachable

    connection.problem, connection.catalog = None, catalog(tools=[tool_entry("echo"), tool_entry("more")])
    again = reported(refused, connection, Settings())
    assert (again.problem, again.published and again.published.catalog) == (None, connection.catalog)

    connection.lose(unreachable)
    lost = reported(live, connection, Settings())
    assert lost == replace(live, state=ServerState.UNAVAILABLE, problem=unreachable)
