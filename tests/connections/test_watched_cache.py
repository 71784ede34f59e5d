"""connection_cache.py under a watch: what a server announces is kept no longer, and is asked for once."""

from typing import Any

import anyio
import pytest

from tests.support.caching_house import PUBLIC, URI, answers, house, text_of, tool
from tests.support.eventually import eventually
from tests.support.scripted_http import Chunk, Reply, Script, Seen, event, result, scripted_http
from tests.support.subscriptions import changed, discovered, notification, open_stream

pytestmark = pytest.mark.spec("watch")

OFFERED: dict[str, Any] = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}


class Server:
    """A public peer that grants what is asked for and tells of changes when the test says so."""

    def __init__(self) -> None:
        self.version = 1
        self.filters: list[dict[str, Any]] = []
        self.news: dict[str, anyio.Event] = {}

    @property
    def answers(self) -> dict[str, Script]:
        return answers(
            PUBLIC,
            **{
                "server/discover": discovered(OFFERED),
                "tools/list": self.listed,
                "subscriptions/listen": self.listen,
            },
        )

    def listed(self, _seen: Seen) -> Reply:
        return result({"tools": [tool(f"t{self.version}")], **PUBLIC})

    def listen(self, seen: Seen) -> Reply:
        wanted = seen.params["notifications"]
        self.filters.append(wanted)
        chunks: list[Chunk] = []
        for kind, told in self.news.items():
            updated = event(notification("notifications/resources/updated", uri=URI))
            chunks += [told, changed("tools") if kind == "tools" else updated]
        return open_stream(*chunks, notifications=wanted)


async def test_an_announced_change_is_listed_once_for_everybody() -> None:
    server = Server()
    server.news = {"tools": anyio.Event()}
    async with scripted_http(server.answers) as peer, house() as home:
        first, told = await home.open(peer, "a"), server.news.pop("tools")
        server.version = 2
        assert [each.name for each in (await home.open(peer, "b")).catalog.tools] == ["t1"]
        told.set()
        await eventually(lambda: [each.name for each in first.catalog.tools] == ["t2"])
        assert [each.name for each in (await home.open(peer, "c")).catalog.tools] == ["t2"]
        assert (len(peer.of("tools/list")), len(peer.of("prompts/list"))) == (2, 0)


async def test_what_was_read_is_watched_and_read_again_once_it_has_changed() -> None:
    server = Server()
    server.news = {"resource": anyio.Event()}
    async with scripted_http(server.answers) as peer, house() as home:
        connection = await home.open(peer)
        await text_of(connection)
        await eventually(lambda: URI in connection.watch.granted.resources)
        await text_of(connection)
        assert len(peer.of("resources/read")) == 1
        server.news["resource"].set()
        await eventually(lambda: not connection.cache.resources())
        await text_of(connection)
        assert len(peer.of("resources/read")) == 2
