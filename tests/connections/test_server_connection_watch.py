"""server_connection.py: what is watched while it lives, what a change makes of its catalog, and how the watch ends."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from yarl import URL

from app.connections.classify import Peer
from app.connections.http_pool import HttpPool
from app.connections.judging import Judge
from app.connections.prepare import CatalogLimits
from app.connections.recovery import Backoff
from app.connections.refreshes import Pace
from app.connections.server_connection import ServerConnection
from app.connections.streamable_http import StreamableHttpTransport
from app.connections.subscriptions import WatchTerms
from app.connections.terms import Terms
from app.connections.transport import OnLost, Transport
from app.core.connection_state import ConnectionState
from app.core.problems import CatalogInvalid
from app.settings import Settings
from tests.support.eventually import eventually
from tests.support.scripted_http import (
    ECHO,
    HANG,
    Reply,
    Script,
    ScriptedHttp,
    Seen,
    error,
    result,
    scripted_http,
    stream,
)
from tests.support.subscriptions import acknowledged, changed, discovered, ended, open_stream

pytestmark = pytest.mark.spec("watch")


class Server:
    """A peer whose list and whose announcement the test holds."""

    def __init__(self) -> None:
        self.names = ["echo"]
        self.lists: list[Reply] = []
        self.announce = anyio.Event()

    def listed(self, _seen: Seen) -> Reply:
        if self.lists:
            return self.lists.pop(0)
        return result({"tools": [{**ECHO, "name": name} for name in self.names]})

    def listen(self, _seen: Seen) -> Reply:
        return open_stream(self.announce, changed("tools"))

    @property
    def answers(self) -> dict[str, Script]:
        return {
            "server/discover": discovered(),
            "tools/list": self.listed,
            "subscriptions/listen": self.listen,
        }


class House:
    """One connection over HTTP and what it told."""

    def __init__(self, peer: ScriptedHttp, connection: ServerConnection, told: list[tuple[str, ...]]) -> None:
        self.peer = peer
        self.connection = connection
        self.told = told

    def count(self, method: str) -> int:
        return len(self.peer.of(method))

    @property
    def names(self) -> list[str]:
        return [entry.name for entry in self.connection.catalog.tools]


@asynccontextmanager
async def house(
    answers: dict[str, Script],
    *,
    pace: Pace | None = None,
    watch: WatchTerms | None = None,
    judge: Judge | None = None,
) -> AsyncGenerator[House]:
    told: list[tuple[str, ...]] = []
    again = Backoff(first=0.01, ceiling=0.01)
    terms = Terms(
        5000,
        CatalogLimits(10, 10_000),
        anyio.Lock,
        again,
        watch or WatchTerms(backoff=again, patience=0.05),
        pace or Pace(0.01, 0.0, again),
        judge,
    )

    def note(connection: ServerConnection) -> None:
        told.append(tuple(entry.name for entry in connection.catalog.tools))

    pool = HttpPool(Settings())
    try:
        async with scripted_http(answers) as peer:

            async def open_http(on_lost: OnLost) -> Transport:
                return StreamableHttpTransport(pool, URL(peer.url), {}, message_max=100_000)

            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    connection = ServerConnection(
                        Peer("p", "http"), open_http, terms, group=group, on_change=note
                    )
                    yield House(peer, connection, told)
                    assert await connection.retire() is None
            # The group has ended by itself: no task of the connection is left.
    finally:
        await pool.close()


async def test_the_stream_stands_before_the_lists_are_drained() -> None:
    server = Server()
    async with house({**server.answers, "subscriptions/listen": open_stream()}) as home:
        await home.connection.prepare()
        assert home.peer.methods == ["server/discover", "subscriptions/listen", "tools/list"]
        assert (home.connection.is_live, home.told) == (True, [])
        await home.connection.retire()
        assert not home.connection.is_live
        await home.peer.seen[1].gone.wait()


async def test_without_an_offer_there_is_no_stream_and_no_task() -> None:
    async with house({}) as home:
        await home.connection.prepare()
        assert (home.connection.is_live, home.count("subscriptions/listen")) == (False, 0)
        assert home.connection.watch._scope is None


async def test_a_change_lists_what_changed_again_and_only_that() -> None:
    server = Server()
    capabilities: dict[str, Any] = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
    async with house({**server.answers, "server/discover": discovered(capabilities)}) as home:
        await home.connection.prepare()
        server.names = ["new"]
        server.announce.set()
        await eventually(lambda: home.told)
        assert (home.told, home.names) == ([("new",)], ["new"])
        counts = [home.count(each) for each in ("tools/list", "resources/list", "prompts/list")]
        assert counts == [2, 1, 1]
        assert home.count("server/discover") == 1


async def test_a_change_without_a_difference_tells_nobody() -> None:
    server = Server()
    async with house(server.answers) as home:
        await home.connection.prepare()
        before = home.connection.catalog
        server.announce.set()
        await eventually(lambda: home.count("tools/list") == 2)
        await anyio.sleep(0.02)
        assert (home.told, home.connection.catalog is before) == ([], True)


async def test_a_change_while_it_prepares_is_listed_once_it_is_ready() -> None:
    server = Server()
    server.announce.set()
    gate = anyio.Event()
    slow = stream(gate, 'data: {"jsonrpc":"2.0","id":$id,"result":{"tools":[]}}\n\n')
    server.lists = [slow]
    async with house(server.answers) as home:
        async with anyio.create_task_group() as group:
            group.start_soon(home.connection.prepare)
            await eventually(lambda: home.count("tools/list"))
            await anyio.sleep(0.05)
            assert home.count("tools/list") == 1
            gate.set()
        await eventually(lambda: home.names == ["echo"])
        assert home.told == [("echo",)]


@pytest.mark.parametrize(
    "broken, code, is_tried_again",
    [
        (result({}), "catalog-invalid", False),
        (error(-32603), "catalog-invalid", False),
        (Reply(status=503), "server-unavailable", True),
        (stream(then="reset"), "server-unavailable", True),
    ],
    ids=["no-list", "error", "refused", "cut"],
)
async def test_a_refresh_that_fails_keeps_the_catalog_and_says_so(
    broken: Reply, code: str, is_tried_again: bool
) -> None:
    server = Server()
    async with house(server.answers) as home:
        await home.connection.prepare()
        server.lists, server.names = [broken, broken], ["new"]
        server.announce.set()
        await eventually(lambda: home.connection.problem is not None)
        assert home.connection.problem is not None
        assert (home.connection.problem.code, home.connection.problem.__traceback__) == (code, None)
        assert (home.names, home.connection.state) == (["echo"], ConnectionState.READY)
        if is_tried_again:
            await eventually(lambda: home.names == ["new"])
            assert home.connection.problem is None
            assert home.count("tools/list") == 4
        else:
            await anyio.sleep(0.05)
            assert home.count("tools/list") == 2
        refreshed = {(code,): 2, ("ok",): 1} if is_tried_again else {(code,): 1}
        assert home.connection._terms.measures.refreshes.values == refreshed


async def test_a_stream_that_was_lost_is_followed_by_one_refresh() -> None:
    server = Server()
    replies = [stream(acknowledged()), open_stream()]
    async with house({**server.answers, "subscriptions/listen": replies}) as home:
        await home.connection.prepare()
        server.names = ["new"]
        await eventually(lambda: home.names == ["new"])
        await anyio.sleep(0.05)
        assert [home.count(each) for each in ("subscriptions/listen", "tools/list")] == [2, 2]
        assert home.connection.is_live


async def test_a_server_that_never_acknowledges_delays_and_fails_nothing() -> None:
    server = Server()
    async with house({**server.answers, "subscriptions/listen": stream(HANG)}) as home:
        await home.connection.prepare()
        assert (home.connection.is_live, home.names) == (False, ["echo"])
        await home.connection.retire()
        await home.peer.of("subscriptions/listen")[0].gone.wait()


async def test_a_failed_preparation_has_ended_its_stream() -> None:
    server = Server()
    server.lists = [error(-32603)]
    async with house({**server.answers, "subscriptions/listen": open_stream()}) as home:
        with pytest.raises(CatalogInvalid):
            await home.connection.prepare()
        await home.peer.of("subscriptions/listen")[0].gone.wait()
        assert not home.connection.is_live


async def test_a_call_goes_on_while_lists_are_refreshed_and_a_retirement_ends_the_refresh() -> None:
    server = Server()
    async with house(server.answers) as home:
        await home.connection.prepare()
        server.lists = [stream(HANG)]
        server.announce.set()
        await eventually(lambda: home.count("tools/list") == 2)
        await home.connection.request("tools/call", {"name": "echo", "arguments": {}})
        await home.connection.retire()
        await home.peer.of("tools/list")[1].gone.wait()


async def test_two_hundred_changes_cost_two_refreshes_at_most() -> None:
    server = Server()
    storm = stream(acknowledged(), server.announce, changed("tools") * 200, HANG)
    async with house({**server.answers, "subscriptions/listen": storm}, pace=Pace()) as home:
        await home.connection.prepare()
        server.announce.set()
        await anyio.sleep(1.5)
        assert 2 <= home.count("tools/list") <= 3


async def test_a_stream_that_is_acknowledged_and_closed_costs_few_requests() -> None:
    server = Server()
    async with house(
        {**server.answers, "subscriptions/listen": ended()}, pace=Pace(), watch=WatchTerms()
    ) as home:
        await home.connection.prepare()
        await anyio.sleep(2.0)
        assert home.count("subscriptions/listen") <= 3
        assert home.count("tools/list") <= 3


@pytest.mark.spec("prepare")
async def test_a_refresh_judges_the_new_tools_ahead() -> None:
    server = Server()
    judge = Judge(max_schema_depth=8, max_schema_nodes=100)
    async with house(server.answers, judge=judge) as home:
        await home.connection.prepare()
        assert list(home.connection.catalog.judged) == ["echo"]
        server.names = ["new", "more"]
        server.announce.set()
        await eventually(lambda: home.told)
        assert list(home.connection.catalog.judged) == ["new", "more"]
