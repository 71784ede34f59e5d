"""Many workspaces and one server: what their hydrations cost it, counted in requests. SPEC §watch."""

from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.support.caching_house import LISTS, PRIVATE, PUBLIC, STALE, answers
from tests.support.peers.programs import HERE as PEERS
from tests.support.peers.programs import http_definition, http_peer
from tests.support.scripted_http import REVISION, ScriptedHttp, result, scripted_http
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

MANY = 1000


def cost(peer: ScriptedHttp) -> dict[str, int]:
    """Return how often each method was asked for."""
    return dict(Counter(peer.methods))


async def hydrate(home: WorkspaceHouse, names: list[str]) -> None:
    """Have these workspaces used for the first time, all at once."""
    async with anyio.create_task_group() as group:
        for name in names:
            group.start_soon(home.workspace(name).ready)
    for name in names:
        server = home.workspace(name).snapshot.servers["p"]
        assert server.published is not None
        assert [tool.name for tool in server.published.catalog.tools] == ["echo"]


@pytest.mark.spec("watch")
@pytest.mark.spec("hydration")
@pytest.mark.slow
async def test_a_thousand_workspaces_at_once_cost_a_public_server_one_set_of_lists(tmp_path: Path) -> None:
    async with (
        scripted_http(answers(PUBLIC)) as peer,
        workspace_house(tmp_path, defaults={"p": http(peer)}) as home,
    ):
        with anyio.fail_after(50):
            await hydrate(home, [f"w{index}" for index in range(MANY)])
            assert cost(peer) == {"server/discover": MANY, **dict.fromkeys(LISTS, 1)}
            await hydrate(home, ["late"])
            assert cost(peer) == {"server/discover": MANY + 1, **dict.fromkeys(LISTS, 1)}
            await home.act("reconnect", "w7", name="p")
            assert cost(peer) == {"server/discover": MANY + 2, **dict.fromkeys(LISTS, 2)}


@pytest.mark.spec("watch")
@pytest.mark.spec("hydration")
@pytest.mark.slow
@pytest.mark.parametrize("control", [PRIVATE, STALE], ids=["private", "not to be kept"])
async def test_a_thousand_workspaces_cost_any_other_server_one_set_each(
    tmp_path: Path, control: dict[str, Any]
) -> None:
    tools_alone = result({"supportedVersions": [REVISION], "capabilities": {"tools": {}}})
    async with (
        scripted_http(answers(control, **{"server/discover": tools_alone})) as peer,
        workspace_house(tmp_path, defaults={"p": http(peer)}) as home,
    ):
        with anyio.fail_after(50):
            await hydrate(home, [f"w{index}" for index in range(MANY)])
        assert cost(peer) == {"server/discover": MANY, "tools/list": MANY}


@pytest.mark.spec("watch")
async def test_attached_replaced_restored_and_reconnected_servers_are_listed_afresh(tmp_path: Path) -> None:
    async with (
        scripted_http(answers(PUBLIC)) as peer,
        workspace_house(tmp_path, defaults={"p": http(peer)}) as home,
    ):
        await home.act("list")
        await home.act("list", "other")
        assert cost(peer) == {"server/discover": 2, **dict.fromkeys(LISTS, 1)}
        await home.act("attach", server=http(peer, "q"))
        await home.act("replace", server=http(peer, read=["echo"], tools=["echo"]))
        await home.act("restore", name="p")
        await home.act("reconnect", name="p")
        assert cost(peer) == {"server/discover": 6, **dict.fromkeys(LISTS, 5)}


@pytest.mark.spec("watch")
@pytest.mark.spec("addresses")
async def test_a_read_through_an_operation_is_served_again(tmp_path: Path) -> None:
    async with (
        scripted_http(answers(PUBLIC)) as peer,
        workspace_house(tmp_path, defaults={"p": http(peer)}) as home,
    ):
        uri = "p:///resources/memo%3A%2F%2Fa"
        found = [await home.act("read", workspace, uri=uri) for workspace in ("a", "a", "b")]
        assert found[0] == found[1] == found[2]
        assert len(peer.of("resources/read")) == 1


@pytest.mark.spec("watch")
@pytest.mark.spec("hydration")
async def test_a_restarted_daemon_has_kept_nothing(tmp_path: Path) -> None:
    async with scripted_http(answers(PUBLIC)) as peer:
        for count in (1, 2):
            async with workspace_house(tmp_path, defaults={"p": http(peer)}) as home:
                await home.act("list")
            assert cost(peer) == {"server/discover": count, **dict.fromkeys(LISTS, count)}


@pytest.mark.spec("watch")
@pytest.mark.parametrize("scope, sets", [("public", 1), ("private", 2)])
@pytest.mark.parametrize("kind", ["sdk", "fastmcp"])
async def test_real_servers_are_asked_only_what_they_did_not_let_us_keep(
    tmp_path: Path, kind: str, scope: str, sets: int
) -> None:
    with http_peer(PEERS / "caching_server.py", kind, scope) as url, anyio.fail_after(30):
        defaults = {"p": http_definition("p", url)}
        async with workspace_house(tmp_path, defaults=defaults) as home:
            for workspace in ("a", "b", "a", "b"):
                uri = "p:///resources/memo%3A%2F%2Fwelcome"
                found: Any = await home.act("read", workspace, uri=uri)
                assert found["contents"][0]["text"] == "welcome"
            await home.act("reconnect", "a", name="p")
        async with httpx2.AsyncClient(trust_env=False) as client:
            asked = (await client.get(url.replace("/mcp", "/asked"))).json()
    asked.pop("subscriptions/listen", None)  # watching is another matter
    assert asked == {
        "server/discover": 3,
        **dict.fromkeys(LISTS, sets + 1),
        "resources/read": sets,
    }
