"""Peers that trickle, stall or break off at each phase, clients that vanish at each event. SPEC §connection, §calls."""

import itertools
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from tests.support.children import SCRIPTED_STDIO
from tests.support.daemon import Daemon, run_input, running_daemon
from tests.support.deferring import handle
from tests.support.peers.programs import http_definition
from tests.support.processes import children, command_lines
from tests.support.scripted_http import (
    FRESH,
    HANG,
    REVISION,
    Chunk,
    Reply,
    Script,
    result,
    scripted_http,
    stream,
)

pytestmark = [pytest.mark.timeout(120), pytest.mark.spec("connection", "prepare", "calls")]

Json = dict[str, Any]
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
CONNECT_MS, REQUEST_MS = 1500, 2000

GOOD: dict[str, Json] = {
    "server/discover": {
        "supportedVersions": [REVISION],
        "capabilities": {
            "tools": {"listChanged": True},
            "resources": {},
            "prompts": {},
            "completions": {},
        },
    },
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
    "resources/list": {"resources": [{"uri": "memo:x", "name": "x"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]},
    "tools/call": handle(),
}
"""What is answered where nothing stalls; a call becomes a task."""
PREPARING = ["server/discover", "tools/list", "resources/list", "resources/templates/list", "prompts/list"]
OPERATING: dict[str, Json] = {
    "tools/call": {"kind": "workspace.mcp.call", "server": "p", "tool": "echo", "arguments": {}},
    "tasks/get": {"kind": "workspace.mcp.call", "server": "p", "tool": "echo", "arguments": {}},
    "resources/read": {"kind": "workspace.mcp.read", "uri": "p:///resources/memo%3Ax"},
    "prompts/get": {"kind": "workspace.mcp.read", "uri": "p:///prompts/greet"},
    "completion/complete": {
        "kind": "workspace.mcp.complete",
        "server": "p",
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "who", "value": "a"},
    },
}
"""The action that sends each request."""


def trickled(text: str) -> list[Chunk]:
    """Return the text a byte a while, slower than every deadline of these tests."""
    return [chunk for letter in text for chunk in (letter, 0.2)]


HTTP_WAYS: dict[str, Reply] = {
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
_OTHER = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}) + "\n"
STDIO_WAYS: dict[str, list[Json]] = {
    "nothing": [],
    "half a line": [{"raw": '{"jsonrpc": "2.0", "id": $id, "res'}, {"sleep": 600}],
    "a line by bytes": [{"raw": " " * 300, "split": [1] * 300, "gap": 0.2}],
    "other lines": [{"raw": _OTHER * 50, "split": [len(_OTHER)] * 50, "gap": 0.2}],
}
"""Whichever is being written, a child writes nothing else meanwhile; ``nothing`` leaves it free to answer others."""
HTTP_BREAKS: dict[str, Reply] = {
    "at once": Reply(raw=[], then="reset"),
    "in a head": Reply(raw=[HEAD[:20]], then="reset"),
    "in a body": Reply(raw=[HEAD, '{"jsonrpc": "2.0", '], then="reset"),
    "in a stream": stream('data: {"jsonrpc"', then="reset"),
}
STDIO_BREAKS: dict[str, list[Json]] = {
    "at once": [{"exit": 3}],
    "in a line": [{"raw": '{"jsonrpc": "2.0", "id": $id, "res'}, {"exit": 0}],
    "by a signal": [{"kill": "SEGV"}],
    "with its output": [{"close": "stdout"}, {"sleep": 600}],
}
HTTP_ALL, STDIO_ALL = {**HTTP_WAYS, **HTTP_BREAKS}, {**STDIO_WAYS, **STDIO_BREAKS}
WAYS = [("http", way) for way in HTTP_WAYS] + [("stdio", way) for way in STDIO_WAYS]
BREAKS = [("http", way) for way in HTTP_BREAKS] + [("stdio", way) for way in STDIO_BREAKS]
LISTEN = "subscriptions/listen"


@dataclass(frozen=True)
class Stalling:
    """A server that stalls in one way at one request, and the workspace that has it."""

    method: str
    transport: str
    way: str

    @property
    def workspace(self) -> str:
        words = f"{self.method} {self.transport} {self.way}"
        return "".join(letter if letter.isalnum() else "-" for letter in words)

    @property
    def is_stuck(self) -> bool:
        """Whether it cannot answer anything else meanwhile."""
        return self.transport == "stdio" and self.way != "nothing"

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[Json]:
        """Run it for the block and give its definition."""
        if self.transport == "stdio":
            yield child({self.method: STDIO_ALL[self.way]})
            return
        answers: dict[str, Script] = {name: result(value) for name, value in GOOD.items()}
        async with scripted_http({**answers, self.method: HTTP_ALL[self.way]}) as peer:
            yield http_definition("p", peer.url, read=["echo"])


def child(on: Mapping[str, list[Json]], **script: Any) -> Json:
    """Return the definition of a child that answers well but for these methods."""
    good = {method: [{"result": {**FRESH, **value}}] for method, value in GOOD.items()}
    text = json.dumps({"on": {**good, **on}, **script})
    args = ["-I", "-S", str(SCRIPTED_STDIO), text]  # It starts fast: there are many.
    return {"name": "p", "transport": "stdio", "command": sys.executable, "args": args, "read": ["echo"]}


Use = Callable[[Daemon, Stalling, Json], Awaitable[str]]


def stalling(methods: Iterable[str], ways: Iterable[tuple[str, str]] = WAYS) -> list[Stalling]:
    """Return a server for each method and way."""
    return [Stalling(method, transport, way) for method in methods for transport, way in ways]


async def each(daemon: Daemon, servers: Iterable[Stalling], use: Use) -> dict[Stalling, str]:
    """Return what came of each server's use, all at once; no child is left."""
    told: dict[Stalling, str] = {}

    async def one(server: Stalling) -> None:
        async with server.served() as definition:
            told[server] = await use(daemon, server, definition)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for server in servers:
                group.start_soon(one, server)
        while any(SCRIPTED_STDIO.name in line for line in command_lines(children(daemon.pid)).values()):
            await anyio.sleep(0.02)
    return told


@pytest.fixture(scope="module")
async def hasty(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """A daemon that prepares no server for long."""
    environment = {"PLURNK_MCP_CONNECT_TIMEOUT": str(CONNECT_MS)}
    async with running_daemon(tmp_path_factory.mktemp("hasty"), environment) as daemon:
        yield daemon


@pytest.fixture(scope="module")
async def brief(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """A daemon that waits for no answer for long."""
    environment = {"PLURNK_MCP_REQUEST_TIMEOUT": str(REQUEST_MS)}
    async with running_daemon(tmp_path_factory.mktemp("brief"), environment) as daemon:
        yield daemon


async def test_a_peer_that_is_slow_while_it_is_prepared_costs_its_deadline_and_nobody_else(
    hasty: Daemon,
) -> None:
    async def attach(daemon: Daemon, server: Stalling, definition: Json) -> str:
        answer = await daemon.act(server.workspace, "workspace.mcp.attach", server=definition)
        assert await daemon.servers(server.workspace) == {}
        return str(answer.get("code", "ok"))

    servers = stalling(PREPARING) + [server for server in stalling([LISTEN]) if server.is_stuck]
    assert await each(hasty, servers, attach) == dict.fromkeys(servers, "server-unavailable")
    deaf = await hasty.act("deaf", "workspace.mcp.attach", server=child({}, start=[{"sleep": 600}]))
    assert deaf["code"] == "server-unavailable"


async def test_a_peer_that_is_slow_to_answer_costs_that_operation_and_nobody_else(brief: Daemon) -> None:
    async def operate(daemon: Daemon, server: Stalling, definition: Json) -> str:
        await daemon.attach(server.workspace, definition)
        answer = await daemon.act(server.workspace, **OPERATING[server.method])
        assert (await daemon.act(server.workspace, "workspace.mcp.detach", name="p"))["status"] == 200
        return f"{answer['code']} {answer['outcome']}"

    servers = stalling(OPERATING)
    assert await each(brief, servers, operate) == dict.fromkeys(servers, "operation-timeout unknown")


async def test_a_peer_that_is_slow_to_listen_serves_all_the_same(brief: Daemon) -> None:
    async def use(daemon: Daemon, server: Stalling, definition: Json) -> str:
        attached = await daemon.attach(server.workspace, definition)
        read = await daemon.act(server.workspace, "workspace.mcp.tools")
        assert (await daemon.act(server.workspace, "workspace.mcp.detach", name="p"))["status"] == 200
        return f"{attached['live']} {len(read['tools'])}"

    servers = [server for server in stalling([LISTEN]) if not server.is_stuck]
    assert await each(brief, servers, use) == dict.fromkeys(servers, "False 1")


async def test_a_peer_that_breaks_off_at_any_phase_costs_that_alone(brief: Daemon) -> None:
    async def use(daemon: Daemon, server: Stalling, definition: Json) -> str:
        attached = await daemon.act(server.workspace, "workspace.mcp.attach", server=definition)
        if server.method in PREPARING:
            assert await daemon.servers(server.workspace) == {}
            return str(attached.get("code", "ok"))
        answer = await daemon.act(server.workspace, **OPERATING[server.method])
        assert (await daemon.act(server.workspace, "workspace.mcp.detach", name="p"))["status"] == 200
        return f"{answer['code']} {answer['outcome']}"

    servers = stalling([*PREPARING, *OPERATING], BREAKS)
    expected = {
        **dict.fromkeys(PREPARING, "server-unavailable"),
        **dict.fromkeys(OPERATING, "tool-call-failed unknown"),
        # A task is asked about again until its operation is over.
        "tasks/get": "operation-timeout unknown",
    }
    told = await each(brief, servers, use)
    assert told == {server: expected[server.method] for server in servers}


async def test_a_client_that_vanishes_at_any_event_leaves_nothing(
    daemon: Daemon, workspace: str, scripted_url: str
) -> None:
    definition = http_definition("p", scripted_url, read=["echo"])
    actions: dict[str, Json] = {
        "list": {"kind": "workspace.mcp.list"},
        "call": {"kind": "workspace.mcp.call", "server": "p", "tool": "echo", "arguments": {"text": "x"}},
        "reconnect": {"kind": "workspace.mcp.reconnect", "name": "p"},
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
