"""Peers that trickle or stall at each phase, and clients that vanish at each event. SPEC §connection, §calls."""

import itertools
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from tests.support.daemon import Daemon, run_input, running_daemon
from tests.support.peers.programs import http_definition
from tests.support.scripted_http import HANG, Chunk, Reply, scripted_http, stream

pytestmark = [pytest.mark.timeout(120), pytest.mark.spec("connection", "prepare", "calls")]

Json = dict[str, Any]
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
CONNECT_MS, REQUEST_MS = 1500, 2000


def trickled(text: str) -> list[Chunk]:
    """Return the text a byte a while, slower than every deadline of these tests."""
    return [chunk for letter in text for chunk in (letter, 0.2)]


WAYS: dict[str, Reply] = {
    "nothing": Reply(raw=[HANG]),
    "half a head": Reply(raw=[HEAD[:20], HANG]),
    "a head": Reply(raw=[HEAD, HANG]),
    "half a body": Reply(raw=[HEAD + '{"jsonrpc": "2.0", ', HANG]),
    "a head by bytes": Reply(raw=trickled(HEAD)),
    "a body by bytes": Reply(raw=[HEAD, *trickled(" " * 1000)]),
    "a stream": stream(HANG),
    "a stream of comments": stream(*trickled(": still there\n\n" * 20)),
    "half an event": stream('data: {"jsonrpc"', HANG),
}


@pytest.fixture(scope="module")
async def hasty(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """A daemon whose deadlines are short."""
    environment = {
        "PLURNK_MCP_CONNECT_TIMEOUT": str(CONNECT_MS),
        "PLURNK_MCP_REQUEST_TIMEOUT": str(REQUEST_MS),
        "PLURNK_HOST_EFFECT": "allow",
    }
    async with running_daemon(tmp_path_factory.mktemp("hasty"), environment) as daemon:
        yield daemon


async def test_a_peer_that_is_slow_at_any_phase_costs_its_deadline_and_nobody_else(hasty: Daemon) -> None:
    told: dict[str, str] = {}

    async def attach(way: str, method: str) -> None:
        async with scripted_http({method: WAYS[way]}) as peer:
            workspace = f"{method} {way}".replace(" ", "-").replace("/", "-")
            answer = await hasty.act(workspace, "workspace.mcp.attach", server=http_definition("p", peer.url))
            told[f"{method}: {way}"] = str(answer.get("code", "ok"))
            assert await hasty.servers(workspace) == {}

    async def call(way: str) -> None:
        async with scripted_http() as peer:
            workspace = f"call-{way}".replace(" ", "-")
            await hasty.attach(workspace, http_definition("p", peer.url))
            peer.answers["tools/call"] = WAYS[way]
            answer = await hasty.act(workspace, "workspace.mcp.call", server="p", tool="echo", arguments={})
            told[f"tools/call: {way}"] = f"{answer['code']} {answer['outcome']}"
            assert len(peer.of("tools/call")) == 1
            detached = await hasty.act(workspace, "workspace.mcp.detach", name="p")
            assert detached["status"] == 200

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for way in WAYS:
                group.start_soon(attach, way, "server/discover")
                group.start_soon(attach, way, "tools/list")
                group.start_soon(call, way)
    preparing = {
        f"{method}: {way}": "server-unavailable"
        for method in ("server/discover", "tools/list")
        for way in WAYS
    }
    assert told == {**preparing, **{f"tools/call: {way}": "operation-timeout unknown" for way in WAYS}}


async def test_a_client_that_vanishes_at_any_event_leaves_nothing(
    daemon: Daemon, workspace: str, scripted_url: str
) -> None:
    definition = http_definition("p", scripted_url, read=["echo"])
    actions: dict[str, Json] = {
        "list": {"kind": "workspace.mcp.list"},
        "call": {"kind": "workspace.mcp.call", "server": "p", "tool": "echo", "arguments": {"text": "x"}},
        "watch": {"kind": "workspace.mcp.watch"},
    }
    await daemon.attach(workspace, definition)
    for action in actions.values():
        for count in itertools.count(1):
            if not await _vanished(daemon, workspace, action, count) or count == 10:
                break
    with anyio.fail_after(10):
        while await _gauges(daemon) != (0, 0):
            await anyio.sleep(0.02)
    # Nobody holds the server: it may be changed.
    assert (await daemon.act(workspace, "workspace.mcp.replace", server=definition))["status"] == 200


async def _vanished(daemon: Daemon, workspace: str, action: Json, count: int) -> bool:
    """Read so many events and leave; return whether the stream could have had more."""
    with anyio.move_on_after(0.5):
        async with daemon.run(run_input(workspace, action)) as events:
            async for _event in events:
                count -= 1
                if count == 0:
                    return True
            return False
    return False


async def _gauges(daemon: Daemon) -> tuple[float, float]:
    async with daemon.client() as client:
        text = (await client.get("/metrics")).text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return float(values["plurnk_open_streams"]), float(values["plurnk_open_operations"])
