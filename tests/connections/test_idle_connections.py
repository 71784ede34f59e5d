"""idle_connections.py: who is taken, and how long nobody may want a connection."""

import asyncio

import pytest
from multidict import CIMultiDict
from yarl import URL

from app.connections import idle_connections
from app.connections.http_exchange import Post
from app.connections.http_pool import HttpPool
from app.connections.http_request import HeaderLines
from app.connections.idle_connections import IdleConnections
from app.settings import Settings
from tests.support.eventually import eventually
from tests.support.scripted_http import scripted_http

pytestmark = pytest.mark.spec("connection")


async def test_the_last_one_is_taken_first_and_none_that_its_peer_closed() -> None:
    async with scripted_http() as peer:
        pool = HttpPool(Settings())
        place, idle = pool.place(URL(peer.url), CIMultiDict()), IdleConnections()
        first, second, third = [await place.connect() for _ in range(3)]
        for each in (first, second, third):
            idle.give_back(each)
        assert idle.take() is third
        assert third.transport is not None
        peer.drop_connections()
        await eventually(lambda: first.is_closed and second.is_closed)
        assert idle.take() is None
        assert first.transport is None
        third.lease.close()
        await pool.close()


async def test_what_nobody_wants_is_closed_when_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_connections, "KEEPALIVE_S", 0.05)
    async with scripted_http() as peer:
        pool = HttpPool(Settings())
        place = pool.place(URL(peer.url), CIMultiDict())
        old, young = await place.connect(), await place.connect()
        place.give_back(old)
        old.idle_since -= 0.03
        place.give_back(young)
        await eventually(lambda: young.transport is None)
        assert old.transport is None
        assert place.take() is None
        last = await place.connect()
        place.give_back(last)
        last.idle_since -= 1
        assert place.take() is None  # before its time has come to be closed
        await pool.close()


async def test_once_closed_nothing_is_kept() -> None:
    async with scripted_http() as peer:
        pool = HttpPool(Settings())
        place, idle = pool.place(URL(peer.url), CIMultiDict()), IdleConnections()
        before, after = await place.connect(), await place.connect()
        idle.give_back(before)
        idle.close()
        idle.give_back(after)
        idle.close()
        assert (before.transport, after.transport, idle.take()) == (None, None, None)
        await pool.close()


async def test_a_connection_whose_peer_has_not_read_the_request_to_its_end_is_not_kept() -> None:
    over = asyncio.Event()

    async def answer_early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await over.wait()
        writer.transport.abort()

    async with await asyncio.start_server(answer_early, "127.0.0.1", 0) as server:
        pool = HttpPool(Settings())
        url = URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        place, post = pool.place(url, CIMultiDict()), Post()
        connection = await place.connect()
        whole = await post.begin(place, connection, HeaderLines.of({}), bytes(32 * 1024 * 1024))
        assert post.take(whole)
        assert place.take() is None
        await eventually(lambda: connection.transport is None)
        await pool.close()
        over.set()
