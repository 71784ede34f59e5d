"""Lists of servers of the official SDK and of fastmcp that change while they are watched. SPEC §watch.

The SDK's server tells of changes where its author announces them. fastmcp 4.2.3 offers none at this revision; its inner
SDK server does once a handler is registered there, which ``changing`` has the peer do.
"""

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.connections.connector import Connector
from app.connections.recovery import Backoff
from app.connections.server_connection import ServerConnection
from app.core.answers import Result
from app.core.connection_state import ConnectionState
from app.core.definitions import parse_definition
from app.core.masking import Mask
from app.ports import Target
from app.settings import Settings
from tests.support.peers.programs import (
    FASTMCP_SERVER,
    SDK_SERVER,
    http_definition,
    http_peer,
    stdio_definition,
)
from tests.support.processes import peers_of

pytestmark = pytest.mark.spec("watch")

PEERS = pytest.mark.parametrize("program", [SDK_SERVER, FASTMCP_SERVER], ids=["sdk", "fastmcp"])
WAYS = pytest.mark.parametrize("way", ["stdio", "http"])


class House:
    """One connection to a real server."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection

    @property
    def names(self) -> set[str]:
        return {entry.name for entry in self.connection.catalog.tools}

    async def call(self, tool: str, **arguments: Any) -> None:
        answer = await self.connection.request("tools/call", {"name": tool, "arguments": arguments})
        assert isinstance(answer, Result)
        assert answer.value.get("isError") in {None, False}, answer

    async def until(self, state: ConnectionState) -> None:
        while self.connection.state is not state:
            await anyio.sleep(0.005)

    async def has(self, name: str) -> None:
        while name not in self.names:
            await anyio.sleep(0.01)


@asynccontextmanager
async def house(program: Path, way: str, *words: str) -> AsyncGenerator[House]:
    connector = Connector(Settings(), os.environ, Mask(), backoff=Backoff(first=0.01, ceiling=0.01))
    with http_peer(program, *words) if way == "http" else nullcontext("") as url:
        definition = (
            http_definition("p", url) if way == "http" else stdio_definition("p", program, "stdio", *words)
        )
        target = Target("w", parse_definition(definition), "workspace", is_explicit=True)
        try:
            with anyio.fail_after(50):
                async with anyio.create_task_group() as group:
                    connection = await connector.open(target, group, lambda _: None)
                    assert isinstance(connection, ServerConnection)
                    yield House(connection)
                    assert await connection.retire() is None
        finally:
            await connector.close()


@PEERS
@WAYS
async def test_a_tool_that_a_real_server_announces_is_in_the_catalog(program: Path, way: str) -> None:
    words = ["changing"] if program is FASTMCP_SERVER else []
    async with house(program, way, *words) as home:
        assert home.connection.is_live
        assert "late" not in home.names
        await home.call("grow", name="late")
        await home.has("late")
        await home.call("late")


@WAYS
async def test_a_resource_that_is_watched_is_told_of_and_another_is_not(way: str) -> None:
    async with house(SDK_SERVER, way) as home:
        updated: list[str] = []
        news = anyio.Event()

        def note(uri: str) -> None:
            updated.append(uri)
            news.set()

        watch = home.connection.watch
        watch.on_resource_updated = note
        watch.set_resources(["memo://welcome"])
        while not watch.granted.resources:
            await anyio.sleep(0.01)
        await home.call("touch", uri="memo://other")
        await home.call("touch", uri="memo://welcome")
        await news.wait()
        assert updated == ["memo://welcome"]
        await home.call("grow", name="late")
        await home.has("late")


@WAYS
async def test_fastmcp_as_it_comes_offers_no_changes_and_is_not_asked_for_any(way: str) -> None:
    async with house(FASTMCP_SERVER, way) as home:
        assert not home.connection.is_live
        assert home.connection.watch._scope is None


async def test_a_child_that_died_is_listened_to_again() -> None:
    others = set(peers_of(os.getpid()))
    async with house(SDK_SERVER, "stdio") as home:
        (child,) = set(peers_of(os.getpid())) - others
        os.kill(child, signal.SIGKILL)
        await home.until(ConnectionState.RECOVERING)
        assert not home.connection.is_live
        await home.until(ConnectionState.READY)
        assert home.connection.is_live
        await home.call("grow", name="late")
        await home.has("late")


async def test_an_http_server_that_went_away_is_not_live_and_not_lost() -> None:
    others = set(peers_of(os.getpid()))
    async with house(SDK_SERVER, "http") as home:
        (server,) = set(peers_of(os.getpid())) - others
        os.kill(server, signal.SIGKILL)
        while home.connection.is_live:
            await anyio.sleep(0.01)
        assert home.connection.state is ConnectionState.READY
