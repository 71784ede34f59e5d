"""connection_cache.py: what a connection reads and what it need not, counted at scripted peers."""

from typing import Any

import anyio
import pytest

from app.connections.connection_cache import RESOURCES_MAX
from app.core.answers import Result
from tests.support.caching_house import PRIVATE, PUBLIC, URI, answers, house, text_of
from tests.support.peers.programs import stdio_definition
from tests.support.scripted_http import Reply, Seen, error, result, scripted_http


@pytest.mark.spec("watch", "observe")
@pytest.mark.parametrize("control, asked", [(PUBLIC, 1), (PRIVATE, 2)], ids=["public", "private"])
async def test_a_read_is_served_again_to_whom_it_may_be(control: dict[str, Any], asked: int) -> None:
    async with scripted_http(answers(control)) as peer, house() as home:
        mine, other = await home.open(peer, "a"), await home.open(peer, "b")
        first = await text_of(mine)
        first["contents"].clear()
        second = await text_of(mine)
        assert second["contents"] == [{"uri": URI, "text": "x"}]
        assert (await text_of(other)) == second
        assert len(peer.of("resources/read")) == asked
        lookups = {each: home.caches.lookups.values["reads", each] for each in ("hit", "miss")}
        assert lookups == {"hit": 3 - asked, "miss": asked}
        await text_of(mine, "memo://b")
        assert len(peer.of("resources/read")) == asked + 1


@pytest.mark.spec("watch")
@pytest.mark.parametrize(
    "more", [{"inputResponses": {}}, {"requestState": "s"}, {"inputResponses": {}, "requestState": ""}]
)
async def test_a_further_round_is_neither_served_nor_kept(more: dict[str, Any]) -> None:
    async with scripted_http(answers(PUBLIC)) as peer, house() as home:
        connection = await home.open(peer)
        await text_of(connection, **more)
        await text_of(connection)
        await text_of(connection, **more)
        await text_of(connection)
        assert ["uri" in seen.params for seen in peer.of("resources/read")] == [True] * 3
        assert len(peer.of("resources/read")) == 3


@pytest.mark.spec("watch")
@pytest.mark.parametrize(
    "reply",
    [
        result({"resultType": "input_required", "inputRequests": {}, "contents": [], **PUBLIC}),
        result({"resultType": "other", "contents": [], **PUBLIC}),
        error(-32002),
        Reply(500),
    ],
    ids=["input", "unknown", "error", "refusal"],
)
async def test_only_a_complete_result_of_a_read_is_kept(reply: Reply) -> None:
    async with scripted_http(answers(PUBLIC, **{"resources/read": reply})) as peer, house() as home:
        connection = await home.open(peer)
        for _ in range(2):
            await connection.request("resources/read", {"uri": URI})
        assert len(peer.of("resources/read")) == 2
        assert connection.cache.resources() == frozenset()


@pytest.mark.spec("watch")
async def test_what_was_read_is_known_until_it_changes_or_expires() -> None:
    async with scripted_http(answers(PUBLIC)) as peer, house() as home:
        connection = await home.open(peer, "a")
        news: list[frozenset[str]] = []
        connection.cache.on_resources = lambda: news.append(connection.cache.resources())
        for uri in (URI, "memo://b", URI):
            await text_of(connection, uri)
        assert news == [{URI}, {URI, "memo://b"}]
        other = await home.open(peer, "b")
        await text_of(other)
        assert other.cache.resources() == {URI}
        connection.cache.invalidate_resource(URI)
        assert (connection.cache.resources(), other.cache.resources()) == ({"memo://b"}, set())
        await text_of(other)
        assert len(peer.of("resources/read")) == 3
        home.hand.now = 60
        assert connection.cache.resources() == frozenset()
        for index in range(RESOURCES_MAX + 5):
            await text_of(connection, f"memo://{index}")
        assert len(connection.cache.resources()) == RESOURCES_MAX


@pytest.mark.spec("watch")
async def test_a_change_of_a_part_is_a_change_of_the_whole_that_was_read_and_is_told_again() -> None:
    async with scripted_http(answers(PUBLIC)) as peer, house() as home:
        connection = await home.open(peer)
        news: list[frozenset[str]] = []
        connection.cache.on_resources = lambda: news.append(connection.cache.resources())
        await text_of(connection, "memo://b")
        await text_of(connection)
        connection.cache.invalidate_resource(f"{URI}/part")
        assert connection.cache.resources() == {"memo://b"}
        await text_of(connection)
        assert news == [{"memo://b"}, {"memo://b", URI}, {"memo://b", URI}]
        assert len(peer.of("resources/read")) == 3


@pytest.mark.spec("watch")
async def test_an_answer_overtaken_by_a_change_of_its_resource_is_not_kept() -> None:
    gate = anyio.Event()

    def held(seen: Seen) -> Reply:
        reply = result({"contents": [], **PUBLIC})
        body = str(reply.body).replace("$id", str(seen.message["id"]))
        return Reply(headers=reply.headers, chunks=[gate, body])

    async with scripted_http(answers(PUBLIC, **{"resources/read": held})) as peer, house() as home:
        connection = await home.open(peer)
        async with anyio.create_task_group() as group:
            group.start_soon(text_of, connection)
            await peer.has_seen(6)
            connection.cache.invalidate_resource(URI)
            gate.set()
        await text_of(connection)
        assert len(peer.of("resources/read")) == 2


@pytest.mark.spec("watch")
async def test_nothing_of_a_child_is_shared_or_outlives_it() -> None:
    async with house() as home:
        definition = stdio_definition("p")
        first = await home.open_any(definition)
        await text_of(first, "memo://welcome")
        assert (len(home.caches.lists), first.catalog.cache_control["tools/list"][0]) == (0, 0)
        child, other = home.caches.of_child(), home.caches.of_child()

        async def ask() -> Result:
            asked.append(URI)
            return Result({"contents": [], **PUBLIC}, 1)

        asked: list[str] = []
        child.begin()
        for cache in (child, child, other):
            await cache.read({"uri": URI}, ask)
        assert len(asked) == 2
        child.begin()
        await child.read({"uri": URI}, ask)
        assert len(asked) == 3
        child.close()
        assert child.resources() == frozenset()
        assert other.resources() == {URI}
        await first.cache.read({"uri": URI}, ask)
        assert first.cache.resources() == {URI}
        await first.retire()
        assert first.cache.resources() == frozenset()
