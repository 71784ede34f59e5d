"""What a client may take before it has said who it is: heads, answers and connections of bounded size and time."""

import re
import resource
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any, cast

import anyio
import pytest
from anyio.abc import SocketStream

from app.doors import http_protocol
from app.doors.asgi import SENDER, WHOLE_BODY, Receive, Scope, Send, send_whole
from app.doors.body import read_bytes
from app.doors.http_protocol import AT_ONCE_MAX, HEAD_MAX, HttpProtocol
from app.doors.presence import presence_of
from tests.support.loopback import Loopback, served

pytestmark = pytest.mark.spec("security", "limits")

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
FIRST_READ = 1024 * 1024
"""More than the server reads at once."""


@pytest.fixture
async def loopback() -> AsyncGenerator[Loopback]:
    async def application(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send_whole(send, 200, b"{}")

    async with served(application) as loopback:
        yield loopback


async def everything(stream: SocketStream) -> bytes:
    """Return what comes until the server closes."""
    received = b""
    with anyio.fail_after(20):
        try:
            async for chunk in stream:
                received += chunk
        except anyio.BrokenResourceError:
            pass  # What was still unread when the server closed resets the connection.
    return received


async def send_again_and_again(stream: SocketStream, part: bytes) -> None:
    for _ in range(20):
        await stream.send(part)


@pytest.mark.parametrize(
    ("target", "hosts"),
    [
        (b"/", [b"localhost"]),
        (b"/?at=http://evil.example/", [b"localhost"]),
        (b"http://evil.example/", [b"evil.example"]),
        (b"HTTP://evil.example:80/?x", [b"evil.example:80"]),
        (b"http://localhost@evil.example/", [b"localhost@evil.example"]),
    ],
)
async def test_a_target_that_names_a_host_is_the_host(target: bytes, hosts: list[bytes]) -> None:
    seen: list[bytes] = []

    async def application(scope: Scope, _receive: Receive, send: Send) -> None:
        seen.extend(value for name, value in scope["headers"] if name == b"host")
        await send_whole(send, 200, b"{}")

    async with served(application) as loopback, await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
        await stream.send(b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % target)
        assert b"200" in await everything(stream)
    assert seen == hosts


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(GET + b"X: " + b"a" * 4 * FIRST_READ, id="one-value"),
        pytest.param(GET + b"X: a\r\n" * FIRST_READ, id="many-headers"),
        pytest.param(b"GET /" + b"a" * 4 * FIRST_READ, id="target"),
    ],
)
async def test_a_head_without_end_is_not_collected(loopback: Loopback, head: bytes) -> None:
    async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
        with pytest.raises(anyio.BrokenResourceError):
            await send_again_and_again(stream, head)


async def test_a_head_that_grows_too_large_is_told_so(loopback: Loopback) -> None:
    async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
        await stream.send(GET + b"X: ")
        for _ in range(HEAD_MAX // 1024 + 2):
            await anyio.sleep(0.001)
            await stream.send(b"a" * 1024)
            if loopback.server.server_state.connections == set():
                break
        assert (await everything(stream)).startswith(b"HTTP/1.1 431 ")


async def test_heads_of_one_connection_are_counted_each(loopback: Loopback) -> None:
    head = GET + b"X: " + b"a" * (HEAD_MAX // 2)
    async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
        for _ in range(4):
            await stream.send(head[:100])
            await anyio.sleep(0.01)
            await stream.send(head[100:] + b"\r\n\r\n")
            answer = await stream.receive()
            while not answer.endswith(b"{}"):
                answer += await stream.receive()
            assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("begun", [b"", GET], ids=["nothing", "half"])
async def test_a_head_that_does_not_come_ends_the_connection(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.05)
    async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
        await stream.send(begun or b"\r\n")
        assert await everything(stream) == b""


@pytest.mark.parametrize("then", [b"\r\n", b"P", GET], ids=["nothing", "letter", "half"])
async def test_nor_does_it_stay_for_a_next_head_that_does_not_come(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, then: bytes
) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.3)
    loopback.server.config.timeout_keep_alive = 1
    async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
        await stream.send(GET + b"\r\n")
        answer = await stream.receive()
        while not answer.endswith(b"{}"):
            answer += await stream.receive()
        await stream.send(then)
        assert await everything(stream) == b""


async def test_a_late_head_does_not_cut_the_response_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_TIMEOUT_S", 0.05)
    end = anyio.Event()

    async def slow(_scope: Scope, _receive: Receive, send: Send) -> None:
        await end.wait()
        await send_whole(send, 200, b"{}")

    async with (
        served(slow) as loopback,
        await anyio.connect_tcp("127.0.0.1", loopback.port) as stream,
    ):
        await stream.send(GET + b"\r\n" + GET)
        await anyio.sleep(0.2)
        end.set()
        assert (await everything(stream)).startswith(b"HTTP/1.1 200 ")


async def test_a_request_whose_head_began_before_the_last_answer_is_not_taken_for_idleness() -> None:
    async def slow(scope: Scope, _receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            await anyio.sleep(1.3)
        await send_whole(send, 200, b"{}")

    async with served(slow) as loopback:
        loopback.server.config.timeout_keep_alive = 1
        async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
            for asked in (GET + b"\r\nGET /slow HTTP/1.1\r\n", b"\r\n"):
                await stream.send(asked)
                answer = await stream.receive()
                while not answer.endswith(b"{}"):
                    answer += await stream.receive()


async def test_each_answer_prolongs_its_connection_whenever_the_timer_looks(loopback: Loopback) -> None:
    loopback.server.config.timeout_keep_alive = 60
    async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:

        async def connection() -> HttpProtocol:
            await stream.send(GET + b"\r\n")
            answer = await stream.receive()
            while not answer.endswith(b"{}"):
                answer += await stream.receive()
            (each,) = cast("set[HttpProtocol]", loopback.server.server_state.connections)
            return each

        for _ in range(2):
            asked = await connection()
            asked._look_at_idleness()  # As if its time had come, which the answer has put off.
            assert not asked.transport.is_closing()
            assert asked._idle_timer is not None
            asked._idle_timer.cancel()
        asked = await connection()
        asked._idle_since = asked.loop.time() - 60
        asked._look_at_idleness()
        assert await everything(stream) == b""


async def test_the_rest_of_a_refused_body_does_not_keep_a_connection(loopback: Loopback) -> None:
    loopback.server.config.timeout_keep_alive = 1
    async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
        await stream.send(GET + b"Content-Length: 1000\r\n\r\n")
        answer = b""
        while not answer.endswith(b"{}"):
            answer += await stream.receive()
        await stream.send(b"x")
        assert await everything(stream) == b""


async def test_who_asks_much_without_waiting_for_answers_is_cut_off() -> None:
    begun, end = list[str](), anyio.Event()

    async def slow(scope: Scope, _receive: Receive, send: Send) -> None:
        begun.append(scope["path"])
        await end.wait()
        await send_whole(send, 200, b"{}")

    async with (
        served(slow) as loopback,
        await anyio.connect_tcp("127.0.0.1", loopback.port) as stream,
    ):
        await stream.send((GET + b"\r\n") * 2000)
        assert await everything(stream) == b"", "no other answer stands in the place of the first"
        assert begun == ["/"]
        end.set()


async def test_of_many_who_show_no_token_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "STRANGERS_MAX", 2)

    async def known(scope: Scope, _receive: Receive, send: Send) -> None:
        presence = presence_of(scope)
        assert presence is not None
        presence.is_known = True
        await send_whole(send, 200, b"{}")

    async with served(known) as loopback, AsyncExitStack() as clients:
        streams: list[SocketStream] = []
        for _ in range(4):
            streams.append(
                await clients.enter_async_context(await anyio.connect_tcp("127.0.0.1", loopback.port))
            )
            if len(streams) == 1:
                await streams[0].send(GET + b"\r\n")
                assert (await streams[0].receive()).startswith(b"HTTP/1.1 200 ")
        assert await everything(streams[1]) == b""
        for stays in (streams[0], *streams[2:]):
            await stays.send(GET + b"\r\n")
            assert (await stays.receive()).startswith(b"HTTP/1.1 200 ")


async def test_strangers_get_half_of_the_descriptors_where_those_are_few() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        for few, most in ((100, 50), (1000, 500), (4096, http_protocol.STRANGERS_MAX)):
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(few, before[1]), before[1]))
            assert http_protocol.strangers_max() == most
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("reads", [True, False], ids=["slowly", "nothing"])
async def test_a_client_that_takes_nothing_loses_its_connection_and_a_slow_one_does_not(
    monkeypatch: pytest.MonkeyPatch, *, reads: bool
) -> None:
    monkeypatch.setattr(http_protocol, "STALL_TIMEOUT_S", 0.5)
    body = b"x" * 16 * 1024 * 1024

    async def large(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send_whole(send, 200, body)

    async with (
        served(large) as loopback,
        await anyio.connect_tcp("127.0.0.1", loopback.port) as stream,
    ):
        await stream.send(GET + b"\r\n")
        received = 0
        with anyio.fail_after(20):
            while reads and received < len(body):
                received += len(await stream.receive())
                await anyio.sleep(0.004)
            while not reads and loopback.server.server_state.connections != set():
                await anyio.sleep(0.02)


async def test_an_upgrade_that_is_not_offered_is_not_a_warning(
    loopback: Loopback, caplog: pytest.LogCaptureFixture
) -> None:
    headers: Any = {"Upgrade": "h2c", "Connection": "Upgrade"}
    async with loopback.client(**headers) as client:
        assert (await client.get("/")).status_code == 200
    assert caplog.records == []


@pytest.mark.spec("agui")
@pytest.mark.parametrize("size", [0, 5, 200_000, 2_000_000])
async def test_a_body_that_came_at_once_is_at_hand_and_a_client_that_goes_is_noticed(
    size: int,
) -> None:
    bodies, gone = list[bytes | None](), anyio.Event()

    async def application(scope: Scope, receive: Receive, _send: Send) -> None:
        presence = presence_of(scope)
        assert presence is not None
        presence.watch(gone.set)
        bodies.append(scope.get(WHOLE_BODY))
        received = await read_bytes(scope, receive, limit=size)
        bodies.append(received)
        await gone.wait()

    async with served(application) as loopback:
        async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
            head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size
            await stream.send(head + b"x" * size)
            with anyio.fail_after(5):
                while len(bodies) < 2:
                    await anyio.sleep(0.005)
        with anyio.fail_after(5):
            await gone.wait()
    assert bodies[1] == b"x" * size
    assert bodies[0] in {bodies[1], None if size > 5 else bodies[1]}


CLOSED = b"Connection: close\r\n\r\n"


@pytest.mark.spec("agui")
@pytest.mark.parametrize(
    ("size", "is_at_once", "asked"),
    [
        pytest.param(2, True, b"GET / HTTP/1.1\r\n" + CLOSED, id="closed"),
        pytest.param(2, True, b"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n" + CLOSED, id="pipelined"),
        pytest.param(2, True, b"GET / HTTP/1.0\r\n\r\n", id="old"),
        pytest.param(
            2, True, b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n" + CLOSED, id="unread"
        ),
        pytest.param(0, True, b"GET / HTTP/1.1\r\n" + CLOSED, id="empty"),
        pytest.param(2, False, b"HEAD / HTTP/1.1\r\n" + CLOSED, id="head"),
        pytest.param(AT_ONCE_MAX + 1, False, b"GET / HTTP/1.1\r\n" + CLOSED, id="large"),
    ],
)
async def test_an_answer_that_is_sent_at_once_is_the_one_of_two_messages(
    size: int, asked: bytes, *, is_at_once: bool
) -> None:
    said: list[bool] = []

    async def at_once(scope: Scope, _receive: Receive, send: Send) -> None:
        sender = scope.pop(SENDER)
        said.append(sender.at_once(201, b"text/plain", b"x" * size))
        if not said[-1]:
            await send_whole(send, 201, b"x" * size, media_type=b"text/plain")

    async def by_messages(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send_whole(send, 201, b"x" * size, media_type=b"text/plain")

    answers: list[bytes] = []
    for application in (at_once, by_messages):
        async with served(application) as loopback:
            loopback.server.config.timeout_keep_alive = 60  # Whoever has to close does not wait for it.
            answers.append(re.sub(rb"date: [^\r]+", b"", await loopback.raw(asked)))
    assert answers[0] == answers[1]
    assert set(said) == {is_at_once}


@pytest.mark.spec("agui")
async def test_to_a_client_that_is_gone_nothing_is_written_at_once() -> None:
    said, gone = list[bool](), anyio.Event()

    async def application(scope: Scope, _receive: Receive, _send: Send) -> None:
        presence = presence_of(scope)
        assert presence is not None
        presence.watch(gone.set)
        await gone.wait()
        said.append(scope.pop(SENDER).at_once(200, b"text/plain", b"x"))

    async with served(application) as loopback:
        async with await anyio.connect_tcp("127.0.0.1", loopback.port) as stream:
            await stream.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with anyio.fail_after(5):
            while not said:
                await anyio.sleep(0.005)
    assert said == [False]
