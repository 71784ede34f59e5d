"""Changes that servers tell of, as a workspace shows them: catalog, registry and documents at once, or the old ones."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.documents import document
from app.core.json_value import JsonObject
from app.core.snapshot import ServerSnapshot
from app.ports import Connection
from tests.support.eventually import eventually
from tests.support.scripted_http import (
    ECHO,
    HANG,
    Reply,
    Script,
    ScriptedHttp,
    Seen,
    event,
    result,
    scripted_http,
    stream,
)
from tests.support.subscriptions import acknowledged, changed, discovered, open_stream
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("watch")


class Server:
    """A peer that lists what the test wants and tells of it when the test says so."""

    def __init__(self) -> None:
        self.names = ["echo"]
        self.announcements: list[anyio.Event] = []
        self.listens = 0
        self.open = 0

    @property
    def answers(self) -> dict[str, Script]:
        return {
            "server/discover": discovered(),
            "tools/list": self.listed,
            "subscriptions/listen": self.listen,
        }

    def listed(self, _seen: Seen) -> Reply:
        return result({"tools": [{**ECHO, "name": name} for name in self.names]})

    def listen(self, _seen: Seen) -> Reply:
        gates = [anyio.Event() for _ in range(5)]
        self.announcements = gates[:]
        chunks: list[Any] = []
        for gate in gates:
            chunks += [gate, changed("tools")]
        return open_stream(*chunks)

    def change(self, *names: str) -> None:
        self.names = list(names)
        self.announcements.pop(0).set()


def shown(house: WorkspaceHouse) -> ServerSnapshot[Connection]:
    return house.workspace().snapshot.servers["p"]


def tools(house: WorkspaceHouse) -> list[str]:
    published = shown(house).published
    assert published is not None
    return list(published.registry.tools)


async def test_a_change_is_published_as_one_snapshot_over_the_same_connection(tmp_path: Path) -> None:
    server = Server()
    async with scripted_http(server.answers) as peer, workspace_house(tmp_path) as house:
        attached: Any = (await house.act("attach", server=http(peer)))["server"]
        assert attached["live"] is True
        before, workspace = shown(house), house.workspace()
        server.change("echo", "new")
        await eventually(lambda: tools(house) == ["echo", "new"])
        after = shown(house)
        assert after.published is not None
        assert before.published is not None
        assert after.published.connection is before.published.connection
        assert workspace.generation("p") == 1
        assert tools_of_document(after) == ["echo", "new"]
        summary = (await house.listed())["p"]
        assert (summary["tools"], summary["live"]) == (["echo", "new"], True)
        assert summary["revision"] != attached["revision"]
        entry: Any = workspace.state.snapshot()["servers"]
        assert entry["p"]["revision"] == summary["revision"]
        assert len(peer.of("server/discover")) == 1
        # Who holds the old snapshot still holds a whole one.
        assert list(before.published.registry.tools) == ["echo"]


def tools_of_document(server: ServerSnapshot[Connection]) -> list[str]:
    assert server.published is not None
    text = document("p", server.published.registry)
    return [name for name in ("echo", "new") if f"`{name}`" in text]


async def test_a_catalog_that_breaks_policy_keeps_the_old_one_until_a_good_one_comes(tmp_path: Path) -> None:
    server = Server()
    async with scripted_http(server.answers) as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer, tools=["echo"]))
        before = shown(house).published
        server.change("other")
        await eventually(lambda: shown(house).problem is not None)
        summary = (await house.listed())["p"]
        assert (summary["state"], summary["tools"]) == ("connected", ["echo"])
        assert summary["problem"]["code"] == "catalog-invalid"
        assert shown(house).published is before
        (await house.workspace().lease("p", "op-1")).release()
        server.change("echo", "third")
        await eventually(lambda: shown(house).problem is None)
        assert "problem" not in (await house.listed())["p"]
        assert tools(house) == ["echo"]


async def test_a_running_operation_is_not_touched(tmp_path: Path) -> None:
    server, gate = Server(), anyio.Event()
    answer = event({"jsonrpc": "2.0", "id": "$id", "result": {"content": []}})
    answers = {**server.answers, "tools/call": stream(gate, answer)}
    async with scripted_http(answers) as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        lease = await house.workspace().lease("p", "op-1")
        async with anyio.create_task_group() as group:
            call: JsonObject = {"name": "echo", "arguments": {}}
            group.start_soon(lease.connection.request, "tools/call", call)
            await eventually(lambda: peer.of("tools/call"))
            server.change("new")
            await eventually(lambda: tools(house) == ["new"])
            assert house.workspace().gate("p").operations == ("op-1",)
            gate.set()
        lease.release()


async def test_a_change_during_a_commit_is_in_what_is_published(tmp_path: Path) -> None:
    server = Server()
    async with scripted_http(server.answers) as peer, workspace_house(tmp_path) as house:
        house.store.before_write = anyio.Event()
        async with anyio.create_task_group() as group:

            async def attach() -> None:
                await house.act("attach", server=http(peer))

            group.start_soon(attach)
            await house.store.writing.wait()
            server.change("new")
            (connection,) = house.connector.opened
            await eventually(lambda: [each.name for each in connection.catalog.tools] == ["new"])
            house.store.before_write.set()
        assert tools(house) == ["new"]


async def test_live_is_shown_as_it_comes_and_goes(tmp_path: Path) -> None:
    server, cut = Server(), anyio.Event()
    replies = [stream(acknowledged(), cut), Reply(status=503)]
    answers = {**server.answers, "subscriptions/listen": replies}
    async with scripted_http(answers) as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        before = shown(house).published
        assert before is not None
        cut.set()
        await eventually(lambda: (shown(house).published or before).is_live is False)
        assert (await house.listed())["p"]["live"] is False
        after = shown(house).published
        assert after is not None
        assert after.registry is before.registry


async def test_beyond_the_limit_of_streams_none_opens_and_a_server_serves_all_the_same(
    tmp_path: Path,
) -> None:
    server = Server()
    limited = {"PLURNK_MAX_LISTENS": "1"}
    async with (
        scripted_http(server.answers) as peer,
        workspace_house(tmp_path, environment=limited) as house,
    ):
        for name in ("p", "q", "r"):
            await house.act("attach", server=http(peer, name))
        listed = await house.listed()
        assert [listed[name]["live"] for name in ("p", "q", "r")] == [True, False, False]
        assert [listed[name]["tools"] for name in ("p", "q", "r")] == [["echo"]] * 3
        assert len(peer.of("subscriptions/listen")) == 1
        await house.act("detach", name="p")
        await eventually(lambda: len(peer.of("subscriptions/listen")) == 2)
        listed = await house.listed()
        assert sum(bool(each["live"]) for each in listed.values()) <= 1


@pytest.mark.spec("lifecycle")
async def test_a_reconnect_listens_anew_and_only_once(tmp_path: Path) -> None:
    server = Server()
    async with scripted_http(server.answers) as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        await house.act("reconnect", name="p")
        await eventually(lambda: open_listens(peer) == [False, True])
        server.change("new")
        await eventually(lambda: tools(house) == ["new"])
        await house.act("detach", name="p")
        await eventually(lambda: not any(open_listens(peer)))


def open_listens(peer: ScriptedHttp) -> list[bool]:
    """Return for each stream whether the daemon still holds it open."""
    return [not seen.gone.is_set() for seen in peer.of("subscriptions/listen")]


async def test_a_storm_of_changes_costs_a_bounded_number_of_requests(tmp_path: Path) -> None:
    server = Server()
    storm = stream(acknowledged(), changed("tools") * 200, HANG)
    answers = {**server.answers, "subscriptions/listen": storm}
    async with scripted_http(answers) as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        await anyio.sleep(1.5)
        assert 2 <= len(peer.of("tools/list")) <= 4


async def test_ten_seconds_of_storm_cost_six_lists_at_most(tmp_path: Path) -> None:
    server = Server()
    storm = stream(acknowledged(), *[changed("tools"), 0.01] * 2000, HANG)
    answers = {**server.answers, "subscriptions/listen": storm}
    async with scripted_http(answers) as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        await anyio.sleep(10)
        assert 3 <= len(peer.of("tools/list")) <= 6
