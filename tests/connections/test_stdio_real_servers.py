"""The stdio transport against servers of the official SDK and of fastmcp. SPEC §connection, §revision."""

import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from app.connections.reaper import Reaper
from app.connections.stdio import StdioOpener, StdioTransport
from app.core.answers import AnswerLost, Progress, RemoteError, Result
from app.core.json_value import JsonObject
from app.core.references import StdioExpanded
from tests.support.peers.programs import FASTMCP_SERVER, SDK_SERVER
from tests.support.processes import is_alive, until_exists
from tests.support.stdio_transports import Losses

pytestmark = [pytest.mark.spec("connection"), pytest.mark.spec("revision"), pytest.mark.anyio]

PEERS = pytest.mark.parametrize("peer", [SDK_SERVER, FASTMCP_SERVER], ids=["mcp", "fastmcp"])


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def reaper() -> AsyncIterator[Reaper]:
    reaper = Reaper()
    yield reaper
    assert reaper.groups == frozenset()
    await reaper.close()


@asynccontextmanager
async def attached(reaper: Reaper, peer: Path, losses: Losses) -> AsyncGenerator[StdioTransport]:
    expanded = StdioExpanded(sys.executable, (str(peer), "stdio"), None, {}, frozenset())
    start = StdioOpener("p", expanded, os.environ, reaper, lambda text: text, {}, 16 << 20)
    transport = await start(losses.take)
    try:
        with anyio.fail_after(50):
            yield transport
    finally:
        assert await transport.close() is None
        assert transport.pid is not None
        assert not is_alive(transport.pid)


async def call(transport: StdioTransport, tool: str, **arguments: str | int) -> Result:
    answer = await transport.request("tools/call", {"name": tool, "arguments": dict(arguments)})
    assert isinstance(answer, Result)
    return answer


@PEERS
async def test_a_real_server_discovers_lists_answers_and_reports(reaper: Reaper, peer: Path) -> None:
    losses = Losses()
    async with attached(reaper, peer, losses) as transport:
        discovered = await transport.request("server/discover", {})
        assert isinstance(discovered, Result)
        assert "2026-07-28" in str(discovered.value["supportedVersions"])
        assert isinstance(await transport.request("tools/list", {}), Result)
        text = "\u2028 \u0085 \U0001f600 \x0b" * 20_000
        assert (await call(transport, "echo", text=text)).value["structuredContent"] == {"result": text}

        seen: list[Progress] = []
        params: JsonObject = {"name": "count", "arguments": {"steps": 3}}
        await transport.request("tools/call", params, on_progress=seen.append)
        assert [(each.progress, each.total) for each in seen] == [(1, 3), (2, 3), (3, 3)]
        assert isinstance(await transport.request("no/such/method", {}), RemoteError)
        assert transport.diagnostics.dropped_lines == 0
    assert losses == []


@PEERS
async def test_a_real_server_stops_when_its_caller_leaves_and_goes_on_for_others(
    reaper: Reaper, peer: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with attached(reaper, peer, Losses()) as transport:
        async with anyio.create_task_group() as group:
            params: JsonObject = {"name": "hold", "arguments": {"gate": str(gate)}}
            group.start_soon(transport.request, "tools/call", params)
            await until_exists(Path(f"{gate}.entered"))
            group.cancel_scope.cancel()
        await until_exists(Path(f"{gate}.cancelled"))
        assert "still here" in str((await call(transport, "echo", text="still here")).value)


@PEERS
async def test_a_real_server_that_dies_loses_every_call_at_once(
    reaper: Reaper, peer: Path, tmp_path: Path
) -> None:
    gate, losses = tmp_path / "gate", Losses()
    async with attached(reaper, peer, losses) as transport:
        async with anyio.create_task_group() as group:

            async def lose() -> None:
                with pytest.raises(AnswerLost):
                    await call(transport, "hold", gate=str(gate))

            group.start_soon(lose)
            await until_exists(Path(f"{gate}.entered"))
            assert transport.pid is not None
            os.kill(transport.pid, 9)
        assert [each.signal for each in losses] == ["SIGKILL"]
