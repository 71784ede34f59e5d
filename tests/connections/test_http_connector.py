"""http_connector.py: heads of answers without end, and what comes that nobody asked for."""

import asyncio

import anyio
import pytest
from aiohttp.http import HttpProcessingError
from anyio.lowlevel import checkpoint
from multidict import CIMultiDict
from yarl import URL

from app.connections import idle_connections
from app.connections.http_connector import HEADS_MAX
from app.connections.http_exchange import Post
from app.connections.http_pool import HttpPool
from app.connections.http_request import HeaderLines
from app.core.answers import AnswerLost
from app.settings import Settings
from tests.support.http_way import OK, answer_to, transport_to, value
from tests.support.scripted_http import HANG, PAUSE, Reply, Seen, json_reply, scripted_http

EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
BODY = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ok"}]}}'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)


@pytest.mark.spec("connection")
async def test_heads_that_come_before_the_answer_are_passed_over() -> None:
    assert value(await answer_to(json_reply({"jsonrpc": "2.0", "id": 1, "result": OK}))) == OK
    few = EARLY * (HEADS_MAX // 2)
    assert value(await answer_to(Reply(raw=(few + HEAD + BODY,)))) == {
        "content": [{"type": "text", "text": "ok"}]
    }


@pytest.mark.spec("connection")
async def test_a_peer_that_sends_heads_without_end_is_given_up() -> None:
    with pytest.raises(AnswerLost):
        await answer_to(Reply(raw=(*(EARLY * 1000,) * 100, HANG)))


STRAY = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
PIECES = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "raw",
    [
        (HEAD + BODY + STRAY,),
        (HEAD + BODY, PAUSE, STRAY),
        (HEAD + BODY, PAUSE, b"\r\n"),
        (HEAD, PAUSE, BODY + STRAY),
        (HEAD, PAUSE, BODY, PAUSE, STRAY),
        (PIECES, PAUSE, b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY), PAUSE, STRAY[:9]),
    ],
    ids=["with-it", "behind-it", "blank", "with-its-end", "behind-its-end", "behind-chunks"],
)
async def test_what_comes_without_a_request_answers_no_later_one(
    raw: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_connections, "KEEPALIVE_S", 100.0)  # Its age shall not be what it is closed for.
    replies = [Reply(raw=(*raw, HANG)), json_reply({"jsonrpc": "2.0", "id": "$id", "result": OK})]
    async with scripted_http({"tools/call": replies}) as peer, transport_to(peer) as transport:
        assert value(await transport.request("tools/call", {})) == {
            "content": [{"type": "text", "text": "ok"}]
        }
        with anyio.fail_after(5):
            await peer.seen[0].gone.wait()
        assert value(await transport.request("tools/call", {})) == OK
        assert peer.connections == 2


@pytest.mark.spec("connection")
async def test_an_answer_in_pieces_leaves_its_connection_to_one_that_is_whole_and_the_other_way_round() -> (
    None
):
    def answer(seen: Seen) -> Reply:
        body = BODY.replace(b":1,", b":%d," % seen.message["id"])
        return Reply(raw=(HEAD, PAUSE, body) if len(peer.seen) % 2 else (HEAD + body,))

    async with scripted_http({"tools/call": answer}) as peer, transport_to(peer) as transport:
        for _ in range(4):
            await transport.request("tools/call", {})
        assert peer.connections == 1


@pytest.mark.spec("connection")
async def test_who_speaks_before_it_is_asked_is_told_by_what_it_says() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9\r\n")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        url = URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        pool = HttpPool(Settings())
        place, post = pool.place(url, CIMultiDict()), Post()
        place.give_back(await place.connect())
        for _ in range(10):  # The greeting comes before the request leaves.
            await checkpoint()
        handler = place.take()
        assert handler is not None
        assert not post.take(await post.begin(place, handler, HeaderLines.of({}), b"{}"))
        with pytest.raises(HttpProcessingError):
            await post.read_head()
        post.close()
        await pool.close()
