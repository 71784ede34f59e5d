"""A prepared connection and a definition make one connected server, or policy refuses it."""

from pathlib import Path

import pytest

from app.core.definitions import parse_definition
from app.core.policy import Effect
from app.core.problems import CatalogInvalid
from app.core.snapshot import ServerState
from app.settings import Settings
from app.workspaces.publication import published_server
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
