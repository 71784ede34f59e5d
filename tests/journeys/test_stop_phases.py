"""SIGTERM while everything is at one of its phases: each client has one end, and nothing is left. SPEC §shutdown."""

import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import TaskGroup

from tests.support.authorization_server import REDIRECT, AuthorizationServer, authorization_server
from tests.support.browser import callback_of
from tests.support.daemon import Daemon, run_input
from tests.support.peers.programs import http_definition, scripted_definition
from tests.support.processes import children, peers_of, until_exists, until_gone
from tests.support.protected_server import ProtectedServer, protected_server
from tests.support.scripted_http import HANG, Script, ScriptedHttp, scripted_http, stream
from tests.support.signing_in import ENVIRONMENT, signing_in
from tests.support.standing import stored
from tests.support.subscriptions import changed, discovered, open_stream

pytestmark = [pytest.mark.timeout(180), pytest.mark.spec("shutdown", "lifecycle", "hydration")]

Json = dict[str, Any]
SILENT = stream(HANG)
MID_STREAM = stream(": begun\n\n", HANG)


CALL: Json = {"server": "p", "tool": "echo", "arguments": {}}
ENDS = {
    "connecting": "shutting-down",
    "listing": "shutting-down",
    "child": "shutting-down",
    "registering": "shutting-down",
    "hydrating": "shutting-down",
    "watching": "shutting-down",
    "call": "operation-cancelled",
    "mid-stream": "operation-cancelled",
}
"""What a client is told, by what it was waiting for."""


@dataclass
class Phases:
    """A daemon, and servers that each stall at a phase of their own."""

    daemon: Daemon
    peers: dict[str, ScriptedHttp]
    granting: AuthorizationServer
    guarded: ProtectedServer
    ends: dict[str, httpx2.Response | list[Json]]
    """How each client's request ended, by door and phase."""

    def oauth(self, name: str) -> Json:
        """Return the definition of the server behind sign-ins."""
        return http_definition(
            name, self.guarded.url, authorization={"type": "oauth", "redirectUrl": REDIRECT}
        )

    async def post(self, phase: str, workspace: str, kind: str, **params: Any) -> None:
        """One client of the REST door."""
        self.ends[f"post {phase}"] = await self.daemon.post(workspace, f"workspace.mcp.{kind}", **params)

    async def run(self, phase: str, workspace: str, kind: str, **params: Any) -> None:
        """One client of the AG-UI door."""
        body = run_input(workspace, {"kind": f"workspace.mcp.{kind}", **params})
        async with self.daemon.run(body) as events:
            self.ends[f"run {phase}"] = [event async for event in events]

    async def before(self) -> str:
        """Have servers that calls will hang at, a proposal, and a sign-in; return its callback."""
        for workspace in ("call", "mid-stream"):
            definition = http_definition("p", self.peers[workspace].url, read=["echo"])
            await self.daemon.attach(workspace, definition)
        await self.daemon.attach("child", scripted_definition("p", read=["hold"]))
        proposed: Json = {"server": "p", "tool": "echo", "arguments": {"text": "x"}}
        assert (await self.daemon.act("child", "workspace.mcp.call", **proposed))["interrupts"]
        signing = await self.daemon.act("signing", "workspace.mcp.attach", server=self.oauth("p"))
        return await callback_of(signing["authorization"]["url"])

    def begin(self, clients: TaskGroup, callback: str, gate: Path) -> None:
        """Have a client at each door for each phase, none of which goes on by itself."""
        for door, client in {"post": self.post, "run": self.run}.items():
            for phase in ("connecting", "listing"):
                server = http_definition("p", self.peers[phase].url)
                clients.start_soon(partial(client, phase, f"{door}-{phase}", "attach", server=server))
            silent = scripted_definition("p", "silent")
            clients.start_soon(partial(client, "child", f"{door}-child", "attach", server=silent))
            oauth = self.oauth("p")
            clients.start_soon(partial(client, "registering", f"{door}-oauth", "attach", server=oauth))
            for phase in ("call", "mid-stream"):
                clients.start_soon(partial(client, phase, phase, "call", **CALL))
            clients.start_soon(partial(client, "watching", "call", "watch", seconds=60))
            clients.start_soon(partial(client, "hydrating", "hydrating", "list"))
        complete: Json = {"name": "p", "callbackUrl": callback}
        clients.start_soon(partial(self.post, "exchanging", "signing", "oauth.complete", **complete))
        hold: Json = {"server": "p", "tool": "hold", "arguments": {"gate": str(gate)}}
        clients.start_soon(partial(self.run, "holding", "child", "call", **hold))

    async def reached(self, gate: Path) -> None:
        """Return once every client waits for what will not come."""
        await until_exists(gate.with_suffix(".entered"))
        await self.granting.has_seen("token", 1)
        await self.granting.has_seen("register", 3)
        for name, (method, count) in STALLS.items():
            while len(self.peers[name].of(method)) < count:
                await anyio.sleep(0.01)
        while sum("silent" in line for line in peers_of(self.daemon.pid).values()) < 2:
            await anyio.sleep(0.01)


STALLS = {
    "connecting": ("server/discover", 2),
    "listing": ("tools/list", 2),
    "call": ("tools/call", 2),
    "mid-stream": ("tools/call", 2),
    "hydrating": ("tools/list", 1),
}
"""Where each server stalls, and how many clients get there: those of one hydration share it."""


async def test_a_stop_at_every_phase_at_once_ends_each_client_once_and_leaves_what_was(
    new_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    daemon, gate = new_daemon({}), tmp_path / "gate"
    async with AsyncExitStack() as stack:
        peers = {name: await stack.enter_async_context(scripted_http()) for name in STALLS}
        granting = await stack.enter_async_context(authorization_server())
        guarded = await stack.enter_async_context(protected_server(granting))
        phases = Phases(daemon, peers, granting, guarded, {})
        await daemon.start()
        await daemon.attach("hydrating", http_definition("p", peers["hydrating"].url))
        assert await daemon.stop() == 0
        peers["hydrating"].seen.clear()
        await daemon.start()
        callback = await phases.before()
        before = stored(daemon)
        for name, (method, _) in STALLS.items():
            peers[name].answers[method] = MID_STREAM if name == "mid-stream" else SILENT
        gates = granting.gates
        gates["token"] = gates["register"] = anyio.Event()
        stack.callback(gates["token"].set)
        async with anyio.create_task_group() as clients:
            phases.begin(clients, callback, gate)
            with anyio.fail_after(30):
                await phases.reached(gate)
            family = children(daemon.pid)
            assert await daemon.stop() == 0
            await until_gone(family)
    told = {name: _end(end) for name, end in phases.ends.items()}
    expected = {f"{door} {phase}": code for door in ("post", "run") for phase, code in ENDS.items()}
    expected |= {"post exchanging": "shutting-down", "run holding": "operation-cancelled"}
    assert told == expected
    assert stored(daemon) == before


async def test_a_stop_while_connections_mend_themselves_leaves_what_was(
    new_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    daemon, way, news = await new_daemon(ENVIRONMENT).start(), tmp_path / "way", anyio.Event()
    listens = open_stream(news, changed("tools"))
    answers: dict[str, Script] = {"server/discover": discovered(), "subscriptions/listen": listens}
    told: list[str] = []

    async with scripted_http(answers) as relisting, signing_in(daemon, "refreshing") as refreshing:

        async def call() -> None:
            told.append((await refreshing.call("echo", text="x"))["code"])

        await refreshing.signed_in()
        await daemon.attach("relisting", http_definition("p", relisting.url))
        way.write_text("good")
        await daemon.attach("recovering", scripted_definition("p", f"@{way}"))
        before, [child] = stored(daemon), peers_of(daemon.pid)

        way.write_text("silent")
        os.kill(child, signal.SIGKILL)
        relisting.answers["tools/list"] = SILENT
        news.set()
        refreshing.granting.expire_all()
        gate = refreshing.granting.gates["token:refresh_token"] = anyio.Event()
        async with anyio.create_task_group() as clients:
            clients.start_soon(call)
            with anyio.fail_after(30):
                await refreshing.granting.has_seen("token:refresh_token", 1)
                while len(relisting.of("tools/list")) < 2 or not set(peers_of(daemon.pid)) - {child}:
                    await anyio.sleep(0.01)
            family = children(daemon.pid)
            assert await daemon.stop() == 0
            await until_gone(family)
        gate.set()
    assert told == ["operation-cancelled"]
    assert stored(daemon) == before


def _end(end: httpx2.Response | list[Json]) -> str:
    """Return the code of the Problem that the client was told, once."""
    if isinstance(end, httpx2.Response):
        return end.json().get("code", "ok")
    [result] = [event["value"] for event in end if event.get("name") == "plurnk.action.result"]
    assert [event["type"] for event in end].count("RUN_FINISHED") == 1
    assert end[-1]["type"] == "RUN_FINISHED"
    return "ok" if result["ok"] else result["problem"]["code"]
