"""``workspace.mcp.tools``: the exact registry, without a request."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import orjson
import pytest

from app.actions.tools import ACTION
from app.core.problem import Problem
from app.core.problems import ParameterInvalid, ServerNotConnected, ServerNotFound, ServerUnavailable
from tests.support.acting import done
from tests.support.gated_connection import catalog, tool_entry
from tests.support.operations_house import OperationsHouse, operations_house

ECHO: dict[str, Any] = {
    "type": "object",
    "$defs": {"t": {"type": "string", "x-own": [1]}},
    "properties": {"text": {"$ref": "#/$defs/t"}, "n": {"type": "integer"}},
    "required": ["text"],
    "unevaluatedProperties": False,
}
CATALOGS = {
    "b": catalog([tool_entry("zulu"), tool_entry("alpha", annotations={"readOnlyHint": True})]),
    "a": catalog(
        [tool_entry("echo", description="Says it.", inputSchema=ECHO, outputSchema={"type": "array"})]
    ),
}


def peers(
    definitions: Mapping[str, Mapping[str, Any]] | None = None, **options: Any
) -> AbstractAsyncContextManager[OperationsHouse]:
    return operations_house(CATALOGS, definitions=definitions, **options)


@pytest.mark.spec("actions")
async def test_every_enabled_tool_is_listed_by_server_and_then_as_listed() -> None:
    async with peers({"b": {"read": ["alpha"]}}) as house:
        listed = (await done(house, ACTION))["tools"]
        assert listed == [
            {
                "server": "a",
                "tool": "echo",
                "effect": "host",
                "description": "Says it.",
                "required": ["text"],
                "signature": listed[0]["signature"],
            },
            {
                "server": "b",
                "tool": "zulu",
                "effect": "host",
                "description": "",
                "required": [],
                "signature": "{}",
            },
            {
                "server": "b",
                "tool": "alpha",
                "effect": "read",
                "description": "",
                "required": [],
                "signature": "{}",
            },
        ]
        assert listed[0]["signature"].startswith('{"text": string')
        assert [peer.requests for peer in house.connector.opened] == [[], []]


@pytest.mark.spec("actions")
async def test_a_server_that_came_last_is_listed_by_its_name() -> None:
    async with peers() as house:
        await house.detach("a")
        await house.replace("a", CATALOGS["a"], {})
        assert list(house.workspace.snapshot.servers) == ["b", "a"]
        assert [row["server"] for row in (await done(house, ACTION))["tools"]] == ["a", "b", "b"]


@pytest.mark.spec("policy")
async def test_annotations_never_make_an_effect() -> None:
    async with peers() as house:
        assert {row["effect"] for row in (await done(house, ACTION))["tools"]} == {"host"}


@pytest.mark.spec("policy")
async def test_an_empty_list_enables_nothing() -> None:
    async with peers({"a": {"tools": []}, "b": {"tools": ["zulu"]}}) as house:
        assert [row["tool"] for row in (await done(house, ACTION))["tools"]] == ["zulu"]


@pytest.mark.spec("actions")
async def test_schemas_come_as_the_server_sent_them() -> None:
    async with peers() as house:
        plain, (echo,) = (
            await done(house, ACTION, server="a"),
            (await done(house, ACTION, server="a", schemas=True))["tools"],
        )
        assert orjson.dumps(echo["inputSchema"]) == orjson.dumps(ECHO)
        assert echo["outputSchema"] == {"type": "array"}
        assert {
            name: value for name, value in echo.items() if name not in ("inputSchema", "outputSchema")
        } == (plain["tools"][0])
        assert await done(house, ACTION, server="a") == plain
        (zulu, _) = (await done(house, ACTION, server="b", schemas=True))["tools"]
        assert zulu["inputSchema"] == {"type": "object"}
        assert "outputSchema" not in zulu


@pytest.mark.spec("actions")
@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"server": "c"}, ServerNotFound),
        ({"server": "C"}, ParameterInvalid),
        ({"schemas": "yes"}, ParameterInvalid),
        ({"name": "a"}, ParameterInvalid),
    ],
)
async def test_what_cannot_be_listed_is_refused(members: dict[str, Any], problem: type[Problem]) -> None:
    async with peers() as house:
        with pytest.raises(problem):
            await done(house, ACTION, **members)


@pytest.mark.spec("hydration")
async def test_a_server_that_was_never_connected_has_no_tools_to_list() -> None:
    async with peers(is_hydrated=False) as house:
        house.connector.refusal = ServerUnavailable("a", "stdio", "no such file")
        assert await done(house, ACTION) == {"tools": []}
        with pytest.raises(ServerNotConnected):
            await done(house, ACTION, server="a")
