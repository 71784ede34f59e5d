"""``workspace.mcp.list``: sorted, complete, and without a secret or an argument."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_http import REVISION, result, scripted_http
from tests.support.workspace_house import http, workspace_house

pytestmark = pytest.mark.spec("actions")


async def test_an_empty_workspace_lists_nothing(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        assert await house.act("list") == {"servers": [], "detached": [], "pending": []}


async def test_a_connected_server_is_shown_whole_and_secret_free(tmp_path: Path) -> None:
    discovered: dict[str, Any] = {
        "supportedVersions": [REVISION],
        "capabilities": {"tools": {}},
        "instructions": "Be kind.",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
    }
    async with (
        scripted_http({"server/discover": result(discovered)}) as peer,
        workspace_house(tmp_path, environment={"KEY": "canary-secret"}) as house,
    ):
        await house.act("attach", server=http(peer, "b", headers={"X-Key": "${KEY}"}, read=["echo"]))
        await house.act("attach", server=http(peer, "a"))
        listed: Any = await house.act("list")
        assert [server["name"] for server in listed["servers"]] == ["a", "b"]
        shown = listed["servers"][1]
        revision = shown.pop("revision")
        assert len(revision) == 64
        assert shown == {
            "name": "b",
            "source": "workspace",
            "transport": "http",
            "state": "connected",
            "enabledTools": None,
            "read": ["echo"],
            "withheld": [],
            "protocolVersion": REVISION,
            "server": {"name": "scripted", "version": "1"},
            "capabilities": {"tools": {}},
            "instructions": "Be kind.",
            "tools": ["echo"],
            "resources": 0,
            "resourceTemplates": 0,
            "prompts": 0,
            "live": False,
        }
        assert peer.seen[0].headers["x-key"] == "canary-secret"
        assert "canary-secret" not in str(listed)


@pytest.mark.spec("prepare")
async def test_a_malformed_entry_is_listed_as_withheld_with_a_reason(tmp_path: Path) -> None:
    tools = result({"tools": [{"name": "bare"}, 7, {"name": "ok", "inputSchema": {"type": "object"}}]})
    async with scripted_http({"tools/list": tools}) as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        shown = (await house.listed())["p"]
        assert shown["tools"] == ["ok"]
        assert [entry["name"] for entry in shown["withheld"]] == ["bare", "#1"]
        assert all(entry["reason"] for entry in shown["withheld"])
