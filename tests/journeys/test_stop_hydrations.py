"""SIGTERM while workspaces hydrate from servers that stall: who waits has one end, nothing is left. SPEC §shutdown."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.daemon import Daemon, run_input
from tests.support.peers.programs import http_definition, scripted_definition
from tests.support.processes import children, peers_of, until_gone
from tests.support.scripted_http import HANG, Reply, ScriptedHttp, default_answers, scripted_http, stream
from tests.support.standing import stored

pytestmark = [pytest.mark.timeout(180), pytest.mark.spec("shutdown", "hydration")]

STALLS: dict[str, tuple[str, Reply]] = {
    "discovering": ("server/discover", Reply(raw=[HANG])),
    "listing": ("tools/list", stream(": begun\n\n", HANG)),
}
"""Two servers over HTTP by where they stall; a child that never answers stands beside them."""
SHUTTING_DOWN = {"list": "shutting-down", "call": "shutting-down", "run": "shutting-down"}
MODES: dict[tuple[str, str], dict[str, str]] = {
    ("strict", "lazy"): SHUTTING_DOWN,
    ("isolate", "lazy"): {**SHUTTING_DOWN, "list": "ok"},
    ("strict", "eager"): {},
    ("isolate", "eager"): {},
}
"""What those who wait are told; eagerly everything hydrates, and nobody waits."""


async def test_a_stop_while_workspaces_hydrate_ends_whoever_waits_and_leaves_what_was(
    new_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    daemon, way = await new_daemon({}).start(), tmp_path / "way"
    way.write_text("good")
    async with AsyncExitStack() as stack:
        peers = {name: await stack.enter_async_context(scripted_http()) for name in STALLS}
        for name, peer in peers.items():
            await daemon.attach(name, http_definition("p", peer.url, read=["echo"]))
        # One that is well beside the one that is not: it is closed too.
        await daemon.attach("child", scripted_definition("good"))
        await daemon.attach("child", scripted_definition("p", f"@{way}", read=["echo"]))
        assert await daemon.stop() == 0
        before = stored(daemon)

        way.write_text("silent")
        for name, (method, reply) in STALLS.items():
            peers[name].answers[method] = reply
        told = {mode: await _stopped(daemon, mode, peers) for mode in MODES}
        assert told == {mode: _everywhere(ends) for mode, ends in MODES.items()}
        assert stored(daemon) == before

        way.write_text("good")
        for peer in peers.values():
            peer.answers = default_answers()
        daemon.environment = {}
        await daemon.start()
        for workspace, count in {"discovering": 1, "listing": 1, "child": 2}.items():
            states = [server["state"] for server in (await daemon.servers(workspace)).values()]
            assert states == ["connected"] * count


def _everywhere(ends: dict[str, str]) -> dict[str, str]:
    return {f"{what} {name}": code for name in (*STALLS, "child") for what, code in ends.items()}


async def _stopped(daemon: Daemon, mode: tuple[str, str], peers: dict[str, ScriptedHttp]) -> dict[str, str]:
    """Return what each client was told whose workspace was hydrating when the daemon was stopped."""
    hydration, hydrate = mode
    # With two places, one of the three servers still waits for its turn.
    places = {"PLURNK_MAX_PREPARATIONS": "2"} if hydrate == "eager" else {}
    daemon.environment = {"PLURNK_HYDRATION": hydration, "PLURNK_HYDRATE": hydrate, **places}
    for peer in peers.values():
        peer.seen.clear()
    told: dict[str, str] = {}
    await daemon.start()
    async with anyio.create_task_group() as clients:
        if hydrate == "lazy":
            for workspace in (*STALLS, "child"):
                for client in (_list, _call, _run):
                    clients.start_soon(partial(client, daemon, workspace, told))
        with anyio.fail_after(30):
            await _reached(daemon, peers, at_least=2 if places else 3)
            while hydration == "isolate" and hydrate == "lazy" and len(told) < 3:
                await anyio.sleep(0.01)
        family = children(daemon.pid)
        assert await daemon.stop() == 0
        await until_gone(family)
    return told


async def _reached(daemon: Daemon, peers: dict[str, ScriptedHttp], *, at_least: int) -> None:
    """Return once so many servers stall."""
    while True:
        stalled = [bool(peers[name].of(method)) for name, (method, _) in STALLS.items()]
        stalled.append(any("@" in line for line in peers_of(daemon.pid).values()))
        if sum(stalled) >= at_least:
            return
        await anyio.sleep(0.01)


async def _list(daemon: Daemon, workspace: str, told: dict[str, str]) -> None:
    answer = await daemon.act(workspace, "workspace.mcp.list")
    told[f"list {workspace}"] = str(answer.get("code", "ok"))


async def _call(daemon: Daemon, workspace: str, told: dict[str, str]) -> None:
    call: dict[str, Any] = {"server": "p", "tool": "echo", "arguments": {"text": "x"}}
    answer = await daemon.act(workspace, "workspace.mcp.call", **call)
    told[f"call {workspace}"] = str(answer.get("code", "ok"))


async def _run(daemon: Daemon, workspace: str, told: dict[str, str]) -> None:
    action = {"kind": "workspace.mcp.reconnect", "name": "p"}
    async with daemon.run(run_input(workspace, action)) as events:
        all_of_them = [event async for event in events]
    [result] = [event["value"] for event in all_of_them if event.get("name") == "plurnk.action.result"]
    assert all_of_them[-1]["type"] == "RUN_FINISHED"
    told[f"run {workspace}"] = "ok" if result["ok"] else result["problem"]["code"]
