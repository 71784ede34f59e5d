"""http_exchange.py: what a head is, and which connections carry no request."""

import asyncio

import anyio
import pytest
from aiohttp import ClientConnectionResetError
from anyio.lowlevel import checkpoint
from multidict import CIMultiDict
from yarl import URL

from app.connections.http_connector import BoundedHandler
from app.connections.http_exchange import COMMON_MAX, Place, Post
from app.connections.http_pool import HttpPool
from app.connections.http_request import HeaderLines
from app.connections.whole_answer import WholeAnswer
from app.core.answers import AnswerLost, RequestNotSent
from app.settings import Settings
from tests.support.http_way import OK, transport_to, value
from tests.support.scripted_http import scripted_http


def head_at(
    url: str, headers: dict[str, str], own: dict[str, str], environment: dict[str, str] | None = None
) -> list[str]:
    pool = HttpPool(Settings.from_environment(environment or {}))
    place = pool.place(URL(url), CIMultiDict(headers))
    return place.head(HeaderLines.of(own), 7).decode().split("\r\n")


@pytest.mark.spec("connection")
async def test_what_a_request_names_itself_replaces_what_every_request_has() -> None:
    first, *lines, end, body = head_at(
        "http://h:1/mcp?a=%C3%A9#f", {"X-Key": "ž", "Mcp-Name": "of the definition"}, {"mcp-name": "t"}
    )
    assert (first, end, body) == ("POST /mcp?a=%C3%A9 HTTP/1.1", "", "")
    names = [line.partition(":")[0].lower() for line in lines]
    assert len(set(names)) == len(names)
    assert {"content-length: 7", "host: h:1", "mcp-name: t", "x-key: ž"} <= {line.lower() for line in lines}


@pytest.mark.spec("connection")
async def test_a_proxy_is_asked_for_the_whole_url_but_of_a_tunnel_for_the_path() -> None:
    proxied = {"PLURNK_HTTP_PROXY": "http://proxy:3128"}
    assert head_at("http://h/mcp?a", {}, {}, proxied)[0] == "POST http://h/mcp?a HTTP/1.1"
    assert head_at("https://h/mcp?a", {}, {}, proxied)[0] == "POST /mcp?a HTTP/1.1"


@pytest.mark.spec("connection")
@pytest.mark.parametrize("value", ["a\r\nX: b", "a\nb", "a\rb", "a\0b"])
async def test_a_header_cannot_break_out_of_its_line(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        head_at("http://h/mcp", {}, {"Authorization": value})
    with pytest.raises(ValueError, match="line break"):
        head_at("http://h/mcp", {"X-Key": value}, {})


@pytest.mark.spec("connection")
async def test_what_a_place_remembers_is_bounded_and_right() -> None:
    place = HttpPool(Settings()).place(URL("http://h/mcp"), CIMultiDict({"X-1": "ours"}))
    for turn in range(2):
        for number in range(2 * COMMON_MAX):
            head = place.head(HeaderLines.of({f"x-{number}": "theirs"}), turn)
            assert head.count(b"\r\nX-1: ours\r\n") == (number != 1)
            assert head.endswith(b"\r\nx-%d: theirs\r\nContent-Length: %d\r\n\r\n" % (number, turn))
    assert len(place._common) <= COMMON_MAX


@pytest.mark.spec("connection")
async def test_a_pooled_connection_that_the_server_closed_is_never_used_for_a_request() -> None:
    async with scripted_http() as peer, transport_to(peer) as transport:
        for _ in range(20):
            assert value(await transport.request("tools/call", {"name": "echo"})) == OK
            peer.drop_connections()
            await checkpoint()  # The peer is on this very loop and closes at its next turn.
        assert len(peer.of("tools/call")) == 20


@pytest.mark.spec("connection")
@pytest.mark.parametrize("number", [1, 2, 5])
async def test_nor_are_those_that_several_requests_take_at_once(number: int) -> None:
    async with scripted_http() as peer, transport_to(peer) as transport:

        async def call() -> None:
            assert value(await transport.request("tools/call", {"name": "echo"})) == OK

        for _ in range(20):
            async with anyio.create_task_group() as group:
                for _ in range(number):
                    group.start_soon(call)
            peer.drop_connections()
            await checkpoint()
        assert len(peer.of("tools/call")) == 20 * number
        assert peer.connections >= 20 * number


async def pooled(place: Place, number: int) -> list[BoundedHandler]:
    """Return so many connections that had a request each."""
    posts = [Post() for _ in range(number)]
    handlers = [await place.connect() for _ in posts]
    for post, handler in zip(posts, handlers, strict=True):
        assert post.take(await post.begin(place, handler, HeaderLines.of({}), CALLED))
        post.close()
    return [handler for _ in handlers if (handler := place.take()) is not None]


def begin_all(
    place: Place, handlers: list[BoundedHandler], posts: list[Post]
) -> "list[asyncio.Future[WholeAnswer | None]]":
    """Begin a request on each connection in this turn; return what each awaits."""
    return [
        post.begin(place, handler, HeaderLines.of({}), CALLED)
        for post, handler in zip(posts, handlers, strict=True)
    ]


CALLED = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}'


@pytest.mark.spec("connection")
async def test_nor_is_one_whose_end_the_loop_has_not_noticed() -> None:
    async with scripted_http() as peer:
        pool = HttpPool(Settings())
        place = pool.place(URL(peer.url), CIMultiDict())
        handlers = await pooled(place, 3)
        peer.drop_connections()
        await checkpoint()
        posts = [Post() for _ in handlers]
        begun = begin_all(place, handlers, posts)
        for post, answer in zip(posts, begun, strict=True):
            with pytest.raises(ClientConnectionResetError):
                await answer
            assert not post.is_begun
            post.close()
        assert len(peer.of("tools/call")) == 3
        await pool.close()


@pytest.mark.spec("connection")
async def test_what_comes_before_a_request_has_left_answers_it_not() -> None:
    async with scripted_http() as peer:
        pool = HttpPool(Settings())
        place = pool.place(URL(peer.url), CIMultiDict())
        handlers, posts = await pooled(place, 2), [Post(), Post()]
        first, second = begin_all(place, handlers, posts)
        # As the loop says it where it reads before the turn ends.
        handlers[1].data_received(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        with pytest.raises(ClientConnectionResetError):
            await second
        assert not posts[1].is_begun
        assert posts[0].take(await first)
        posts[1].close()
        assert len(peer.of("tools/call")) == 3
        await pool.close()


@pytest.mark.spec("connection")
@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_new_connection_whose_peer_spoke_first_has_no_second_request(is_begun: bool) -> None:
    async with scripted_http() as peer:
        pool = HttpPool(Settings())
        place, posts = pool.place(URL(peer.url), CIMultiDict()), [Post(), Post()]
        handlers = [await place.connect() for _ in posts]
        unasked = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
        if not is_begun:
            handlers[1].data_received(unasked)
        first, second = begin_all(place, handlers, posts)
        if is_begun:
            handlers[1].data_received(unasked)
        assert posts[0].take(await first)
        assert not posts[1].take(await second)
        await posts[1].read_head()
        assert await posts[1].chunk() == b"{}"
        posts[1].close()
        assert place.take() is handlers[0]
        assert place.take() is None
        posts[0].close()
        handlers[0].lease.close()
        await pool.close()


@pytest.mark.spec("calls")
async def test_a_request_does_not_wait_for_the_end_of_a_connection_that_is_long_in_closing() -> None:
    async with scripted_http() as peer:
        pool = HttpPool(Settings())
        place = pool.place(URL(peer.url), CIMultiDict())
        handlers, posts = await pooled(place, 2), [Post(), Post()]
        begun = begin_all(place, handlers, posts)
        transport = handlers[1].transport
        assert transport is not None
        peer.read_no_more()
        transport.write(b"x" * 30_000_000)  # The rest of a request that was answered before it was read.
        transport.close()  # As the loop does where the peer closed its side.
        with anyio.fail_after(5), pytest.raises(ClientConnectionResetError):
            await begun[1]
        assert not posts[1].is_begun
        for post in posts:
            post.close()
        await pool.close()


@pytest.mark.spec("connection")
@pytest.mark.parametrize("others", [0, 3])
async def test_what_a_server_said_unasked_since_is_no_answer(others: int) -> None:
    async with scripted_http() as peer, transport_to(peer) as transport:

        async def call() -> None:
            assert value(await transport.request("tools/call", {"name": "echo"})) == OK

        for _ in range(20):
            async with anyio.create_task_group() as group:
                for _ in range(1 + others):
                    group.start_soon(call)
            # The loop does not read it before the next request is under way.
            peer.say_unasked(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        assert len(peer.of("tools/call")) == 20 * (1 + others)


@pytest.mark.spec("calls")
async def test_a_request_that_nobody_wants_any_more_before_it_leaves_does_not_leave() -> None:
    async with scripted_http() as peer:
        pool = HttpPool(Settings())
        place, posts = pool.place(URL(peer.url), CIMultiDict()), [Post() for _ in range(4)]
        handlers = [await place.connect() for _ in posts]
        body = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}'
        first, second, third, fourth = [
            post.begin(place, handler, HeaderLines.of({}), body % number)
            for number, (post, handler) in enumerate(zip(posts, handlers, strict=True))
        ]
        second.cancel()
        posts[2].close()
        # The first was alone and left at once; the others wait for the end of the turn.
        assert [post.is_begun for post in posts[:2]] == [True, False]
        assert await first is not None
        assert await fourth is not None
        with pytest.raises(ClientConnectionResetError):
            await third
        assert sorted(seen.message["id"] for seen in peer.of("tools/call")) == [0, 3]
        for post in posts:
            post.close()
        await pool.close()


@pytest.mark.spec("calls")
async def test_of_requests_that_a_close_ends_before_they_left_that_is_known() -> None:
    async with scripted_http() as peer, transport_to(peer) as transport:
        ends: list[type[Exception]] = []

        async def call() -> None:
            try:
                await transport.request("tools/call", {"name": "echo"})
            except (RequestNotSent, AnswerLost) as error:
                ends.append(type(error))

        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(call)  # So that there are as many connections.
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(call)
            await checkpoint()
            await transport.close()
        seen = len(peer.of("tools/call")) - 4
        assert ends.count(RequestNotSent) == 4 - seen
        assert ends.count(AnswerLost) == seen
        assert seen <= 1


@pytest.mark.spec("calls")
async def test_a_server_that_closes_behind_each_answer_gets_every_request_at_most_once() -> None:
    async with scripted_http() as peer, transport_to(peer) as transport:
        peer.idle_close = True
        settled = 0
        for number in range(50):
            try:
                await transport.request("tools/call", {"name": "echo", "arguments": {"n": number}})
                settled += 1
            except AnswerLost:
                pass
        calls = [seen.params["arguments"]["n"] for seen in peer.of("tools/call")]
    assert len(calls) == len(set(calls))
    assert settled <= len(calls)
    assert settled > 0
