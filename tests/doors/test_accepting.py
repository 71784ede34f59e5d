"""Taking clients in where descriptors are scarce, by a real limit of this process."""

import asyncio
import os
import resource
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import anyio
import pytest
import structlog
from typing_extensions import override

from app.doors import accepting
from app.doors.accepting import accept

pytestmark = pytest.mark.spec("limits")


class Greeting(asyncio.Protocol):
    """Says one word to each client."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


@asynccontextmanager
async def greeted() -> AsyncGenerator[tuple[str, int]]:
    """Accept inside the block."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    async with anyio.create_task_group() as group:
        group.start_soon(accept, listening, Greeting)
        await anyio.wait_all_tasks_blocked()
        yield listening.getsockname()
        group.cancel_scope.cancel()
    assert listening.fileno() == -1


@contextmanager
def limited(soft: int) -> Generator[None]:
    """Let the process have no descriptor of this number or above inside the block."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def spent() -> Generator[None]:
    """Have every descriptor that the process may have open inside the block."""
    fillers: list[int] = []
    with limited(max(int(each.name) for each in Path("/dev/fd").iterdir()) + 1):
        try:
            with suppress(OSError):
                while True:
                    fillers.append(os.dup(0))
            yield
        finally:
            for filler in fillers:
                os.close(filler)


async def word(client: socket.socket) -> bytes:
    with anyio.fail_after(10):
        try:
            return await asyncio.get_running_loop().sock_recv(client, 10)
        except ConnectionResetError:
            return b""


def connected(address: tuple[str, int]) -> socket.socket:
    client = socket.create_connection(address)
    client.setblocking(False)
    return client


async def test_each_client_has_a_protocol_of_its_own() -> None:
    async with greeted() as address:
        for _ in range(3):
            with connected(address) as client:
                assert await word(client) == b"hello"


async def test_a_client_that_left_before_its_turn_costs_nobody_anything() -> None:
    async with greeted() as address:
        gone = connected(address)
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        gone.close()
        with connected(address) as client:
            assert await word(client) == b"hello"


async def test_clients_without_a_descriptor_are_turned_away_at_once_and_later_ones_served() -> None:
    async with greeted() as address:
        with ExitStack() as kept:
            clients = [kept.enter_context(connected(address)) for _ in range(5)]
            with spent():
                assert [await word(client) for client in clients] == [b""] * 5
        with connected(address) as client:
            assert await word(client) == b"hello"


async def test_a_limit_below_what_is_open_is_told_once_and_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accepting, "RETRY_S", 0.01)
    async with greeted() as address:
        with ExitStack() as kept:
            clients = [kept.enter_context(connected(address)) for _ in range(3)]
            with structlog.testing.capture_logs() as logged, limited(3):
                await anyio.sleep(0.1)
            assert [line["event"] for line in logged] == ["no-client-can-be-accepted"]
            # They waited: nobody was lost.
            assert [await word(client) for client in clients] == [b"hello"] * 3
        # The reserve is kept again.
        with connected(address) as client, spent():
            assert await word(client) == b""
