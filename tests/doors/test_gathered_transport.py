"""gathered_transport.py: when bytes leave, over a real pair of sockets, and whole answers beside other requests."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import pytest
import uvloop
from anyio.lowlevel import checkpoint
from uvicorn.server import ServerState

from app.doors.asgi import Receive, Scope, Send, send_whole
from app.doors.gathered_transport import WAIT_MAX, Clients, GatheredTransport
from tests.support.loopback import Loopback, served

pytestmark = pytest.mark.spec("agui")


@asynccontextmanager
async def pair(requests: int) -> AsyncGenerator[tuple[GatheredTransport, socket.socket]]:
    """Give the transport of one client of a server with so many requests in progress, and the client's socket."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop, state = asyncio.get_running_loop(), ServerState()
    state.tasks.update(cast("Any", loop.create_future()) for _ in range(requests))
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
    try:
        yield GatheredTransport(transport, Clients(state, loop)), theirs
    finally:
        transport.abort()
        theirs.close()


def came(client: socket.socket) -> bytes | None:
    """Return what has come, None where nothing has; nothing at all is the end."""
    try:
        return client.recv(1_000_000)
    except BlockingIOError:
        return None


async def test_beside_other_requests_what_is_written_in_one_turn_leaves_with_the_next() -> None:
    async with pair(2) as (transport, client):
        transport.write(b"a")
        transport.write(b"b")
        assert (came(client), transport.get_write_buffer_size()) == (None, 2)
        await checkpoint()
        assert (came(client), transport.get_write_buffer_size()) == (b"ab", 0)
        transport.write(b"c")
        await checkpoint()
        assert came(client) == b"c"


async def test_who_is_alone_waits_for_nobody() -> None:
    async with pair(1) as (transport, client):
        transport.write(b"a")
        assert came(client) == b"a"


async def leaving() -> None:
    async with pair(2) as (transport, client):
        transport.write(b"a")
        transport.close()
        assert came(client) == b"a"
        await checkpoint()
        await checkpoint()
        assert came(client) == b""
    async with pair(2) as (transport, client):
        transport.write(b"a")
        transport.abort()
        await checkpoint()
        await checkpoint()
        assert came(client) == b""


async def writing_to_nobody(requests: int) -> None:
    async with pair(requests) as (transport, client):
        transport.abort()
        for _ in range(5):
            await checkpoint()  # Until the system's handle is closed too.
            transport.write(b"a")
        assert came(client) == b""


@pytest.mark.parametrize("requests", [1, 2])
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_is_written_to_a_connection_that_is_gone_is_dropped(run: Any, requests: int) -> None:
    run(writing_to_nobody(requests))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_waits_leaves_before_the_connection_is_closed_and_not_where_it_is_aborted(run: Any) -> None:
    run(leaving())


async def test_what_waits_is_bounded() -> None:
    async with pair(2) as (transport, client):
        transport.write(b"x" * WAIT_MAX)
        assert came(client) is None
        transport.write(b"y")
        received = came(client)
        assert received == b"x" * WAIT_MAX + b"y"
        transport.write(b"z")
        await checkpoint()
        await checkpoint()
        assert came(client) == b"z"


async def test_what_else_is_asked_of_it_is_the_transports() -> None:
    async with pair(1) as (transport, _):
        assert transport.get_extra_info("socket") is not None
        assert not transport.is_closing()
        transport.pause_reading()
        transport.close()
        assert transport.is_closing()
        with pytest.raises(AttributeError):
            _ = transport.no_such_thing


@pytest.mark.parametrize("size", [2, 3 * WAIT_MAX])
async def test_answers_to_many_at_once_are_whole_and_in_order(size: int) -> None:
    all_here, seen = anyio.Event(), 0

    async def application(scope: Scope, _receive: Receive, send: Send) -> None:
        nonlocal seen
        seen += 1
        if seen == 8:
            all_here.set()
        await all_here.wait()
        await send_whole(send, 200, scope["path"].encode() * size)

    answers: dict[int, bytes] = {}

    async def asking(loopback: Loopback, number: int) -> None:
        # The second request waits on the connection for the answer to the first; the last answer ends it.
        paths = [f"/{number}a", f"/{number}b"]
        asked = f"GET {paths[0]} HTTP/1.1\r\n\r\nGET {paths[1]} HTTP/1.1\r\nConnection: close\r\n\r\n"
        answers[number] = await loopback.raw(asked.encode())

    async with served(application) as loopback, anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(asking, loopback, number)
    assert set(answers) == set(range(8))
    for number, answer in answers.items():
        first, second = (part.encode() * size for part in (f"/{number}a", f"/{number}b"))
        assert answer.count(b"HTTP/1.1 200 OK\r\n") == 2
        assert answer.endswith(b"\r\n\r\n" + second)
        assert answer.partition(b"\r\n\r\n")[2].startswith(first + b"HTTP/1.1 200 OK\r\n")


async def test_an_answer_is_not_lost_where_the_rest_of_what_came_is_no_request() -> None:
    together = anyio.Event()

    async def application(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"] == "/other":
            with suppress(TimeoutError):
                await asyncio.wait_for(together.wait(), 5)
        await send_whole(send, 200, b"whole")

    async with served(application) as loopback, await anyio.connect_tcp("127.0.0.1", loopback.port) as other:
        await other.send(b"GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
            await stream.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with anyio.fail_after(5):
                received = b""
                while not received.endswith(b"whole"):
                    received += await stream.receive()
                await stream.send(b"nonsense\r\n\r\n")
                with suppress(anyio.EndOfStream):
                    while True:
                        received += await stream.receive()
        together.set()
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert b"whole" + b"HTTP/1.1 400" in received
