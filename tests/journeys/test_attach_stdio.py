"""Real servers over stdio: attached, used in every way, lost and recovered, detached."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.support.daemon import Daemon, run_input
from tests.support.full_use import check_summary, use_everything
from tests.support.peers.programs import FASTMCP_SERVER, SDK_SERVER, scripted_definition, stdio_definition
from tests.support.processes import is_alive, peers_of, until_exists, until_gone

READ = ["echo", "add", "count", "fail", "hold", "variable", "process", "blow_up"]
INHERITED = {"PATH", "HOME", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}


@pytest.mark.spec("connection", "prepare", "actions")
@pytest.mark.parametrize(
    "program, identity, read",
    [
        (SDK_SERVER, {"name": "sdk-peer", "version": "2.3.0"}, READ),
        (FASTMCP_SERVER, {"name": "fastmcp-peer", "version": "4.2.3"}, READ[:6]),
    ],
    ids=["sdk", "fastmcp"],
)
async def test_a_real_server_is_attached_used_and_detached(
    daemon: Daemon, workspace: str, program: Path, identity: dict[str, str], read: list[str]
) -> None:
    before = set(peers_of(daemon.pid))
    summary = await daemon.attach(workspace, stdio_definition("notes", program, read=read))
    check_summary(summary, name="notes", transport="stdio", identity=identity)
    await use_everything(daemon, workspace, "notes")
    started = set(peers_of(daemon.pid)) - before
    assert len(started) == 1
    await daemon.act(workspace, "workspace.mcp.detach", name="notes")
    await until_gone(started)
    assert set(peers_of(daemon.pid)) == before


@pytest.mark.spec("connection", "references")
async def test_the_child_gets_its_definitions_environment_and_nothing_else(
    new_daemon: Callable[..., Daemon], workspace: str, tmp_path: Path
) -> None:
    daemon = await new_daemon({"SECRET": "canary-of-the-child", "OTHER": "canary-not-for-it"}).start()
    definition = stdio_definition(
        "notes", env={"GIVEN": "<${SECRET}>", "LITERAL": "$${SECRET}"}, cwd=str(tmp_path), read=READ
    )
    await daemon.attach(workspace, definition)
    process = json.loads(await daemon.call_text(workspace, "notes", "process"))
    environment = (await anyio.Path(f"/proc/{process['pid']}/environ").read_text()).split("\0")
    names = {line.partition("=")[0] for line in environment if line}
    assert names <= INHERITED | {"GIVEN", "LITERAL"}
    assert await daemon.call_text(workspace, "notes", "variable", name="GIVEN") == "<canary-of-the-child>"
    assert await daemon.call_text(workspace, "notes", "variable", name="LITERAL") == "${SECRET}"
    assert process["cwd"] == str(tmp_path)


@pytest.mark.spec("connection", "calls")
async def test_a_lost_child_settles_its_call_at_once_and_comes_back(daemon: Daemon, workspace: str) -> None:
    await daemon.attach(workspace, stdio_definition("notes", read=READ))
    first = json.loads(await daemon.call_text(workspace, "notes", "process"))["pid"]
    lost = await daemon.post(
        workspace, "workspace.mcp.call", server="notes", tool="blow_up", arguments={"code": 7}
    )
    assert (lost.status_code, lost.json()["code"]) == (502, "tool-call-failed")
    assert lost.json()["outcome"] == "unknown"
    second = await _again_connected(daemon, workspace)
    assert second != first
    assert not is_alive(first)


async def _again_connected(daemon: Daemon, workspace: str) -> int:
    with anyio.fail_after(20):
        while (await daemon.servers(workspace))["notes"]["state"] != "connected":
            await anyio.sleep(0.1)
    return json.loads(await daemon.call_text(workspace, "notes", "process"))["pid"]


@pytest.mark.spec("connection")
async def test_reconnect_takes_over_from_the_recovery_of_a_killed_child(
    daemon: Daemon, workspace: str
) -> None:
    await daemon.attach(workspace, scripted_definition("notes", read=["process"]))
    pid = int(await daemon.call_text(workspace, "notes", "process"))
    os.kill(pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    reconnected = await daemon.act(workspace, "workspace.mcp.reconnect", name="notes")
    assert reconnected["status"] == 200, reconnected
    assert int(await daemon.call_text(workspace, "notes", "process")) != pid


@pytest.mark.spec("calls")
async def test_a_client_that_leaves_cancels_the_call_at_the_peer(
    daemon: Daemon, workspace: str, tmp_path: Path
) -> None:
    await daemon.attach(workspace, stdio_definition("notes", read=READ))
    gate = tmp_path / "gate"
    action = {
        "kind": "workspace.mcp.call",
        "server": "notes",
        "tool": "hold",
        "arguments": {"gate": str(gate)},
    }
    async with daemon.run(run_input(workspace, action)) as events:
        async for event in events:
            if event["type"] == "TOOL_CALL_END":
                await until_exists(gate.with_suffix(".entered"))
                break
    await until_exists(gate.with_suffix(".cancelled"))
    assert await daemon.call_text(workspace, "notes", "echo", text="still there") == "still there"


@pytest.mark.spec("shutdown", "connection")
async def test_shutting_down_closes_every_child_and_exits_0(
    new_daemon: Callable[..., Daemon], workspace: str
) -> None:
    daemon = await new_daemon({}).start()
    for name in ("one", "two", "three"):
        await daemon.attach(workspace, scripted_definition(name))
    children = set(peers_of(daemon.pid))
    assert len(children) == 3
    assert await daemon.stop() == 0
    await until_gone(children)


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "definition, facts",
    [
        ({"command": "/nonexistent/server"}, {}),
        ({"command": "sh", "args": ["-c", "echo going down >&2; exit 5"]}, {"exitStatus": 5}),
        ({"command": "sh", "args": ["-c", "kill -SEGV $$"]}, {"signal": "SIGSEGV"}),
    ],
    ids=["missing", "exits", "crashes"],
)
async def test_a_server_that_does_not_start_says_how_it_ended(
    daemon: Daemon, workspace: str, definition: dict[str, object], facts: dict[str, object]
) -> None:
    refused = await daemon.post(
        workspace, "workspace.mcp.attach", server={"name": "gone", "transport": "stdio", **definition}
    )
    problem = refused.json()
    assert (refused.status_code, problem["code"], problem["retryable"]) == (502, "server-unavailable", True)
    assert (problem["server"], problem["transport"]) == ("gone", "stdio")
    assert {name: problem.get(name) for name in facts} == facts
    if facts.get("exitStatus") == 5:
        assert "going down" in problem["stderr"]
    assert await daemon.servers(workspace) == {}
