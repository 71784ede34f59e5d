"""Workspaces and servers do not see, wait for or harm each other. SPEC §security, §lifecycle, §connection."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.support.daemon import Daemon
from tests.support.peers.programs import SCRIPTED, http_definition, http_peer, scripted_definition
from tests.support.processes import peers_of, until_exists, until_gone

# Several starts of a whole daemon, on machines that may be busy.
pytestmark = pytest.mark.timeout(180)

GOOD = [f"good-{number}" for number in range(1, 10)]


@pytest.mark.spec("security", "references")
async def test_two_workspaces_with_the_same_server_name_use_their_own_secrets(
    new_daemon: Callable[..., Daemon], scripted_url: str
) -> None:
    daemon = await new_daemon({"SECRET_A": "canary-secret-of-a", "SECRET_B": "canary-secret-of-b"}).start()
    for letter in "AB":
        reference = f"${{SECRET_{letter}}}"
        await daemon.attach(letter, scripted_definition("local", env={"KEY": reference}, read=["variable"]))
        await daemon.attach(
            letter, http_definition("web", scripted_url, headers={"X-Key": reference}, read=["header"])
        )
    for letter in "AB":
        expected = f"canary-secret-of-{letter.lower()}"
        assert await daemon.call_text(letter, "local", "variable", name="KEY") == expected
        assert await daemon.call_text(letter, "web", "header", name="X-Key") == expected
    await daemon.act("A", "workspace.mcp.detach", name="local")
    assert set(await daemon.servers("A")) == {"web"}
    assert set(await daemon.servers("B")) == {"local", "web"}


@pytest.mark.spec("security")
async def test_a_workspace_token_opens_one_workspace_only(daemon: Daemon, workspace: str) -> None:
    printed = daemon.spawn_captured("token", "--workspace", workspace)
    other = Daemon(daemon.directory, url=daemon.url, token=printed)
    assert await other.servers(workspace) == {}
    refused = await other.post(f"{workspace}-other", "workspace.mcp.list")
    assert (refused.status_code, refused.json()["code"]) == (403, "workspace-refused")
    async with other.client() as client:
        assert (await client.get("/v1/workspaces")).status_code == 403


@pytest.mark.spec("connection", "calls")
async def test_a_wedged_call_holds_up_nobody_else(daemon: Daemon, workspace: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    for name in ("wedged", *GOOD):
        await daemon.attach(workspace, scripted_definition(name, read=["echo", "hold"]))
    async with anyio.create_task_group() as group:
        group.start_soon(_call_hold, daemon, workspace, str(gate))
        await until_exists(gate.with_suffix(".entered"))
        with anyio.fail_after(20):
            async with anyio.create_task_group() as callers:
                for name in (*GOOD, "wedged"):
                    callers.start_soon(_echo, daemon, workspace, name)
            for name in GOOD:
                await daemon.act(workspace, "workspace.mcp.detach", name=name)
        assert set(await daemon.servers(workspace)) == {"wedged"}
        gate.with_suffix(".open").touch()


async def _call_hold(daemon: Daemon, workspace: str, gate: str) -> None:
    assert await daemon.call_text(workspace, "wedged", "hold", gate=gate) == "released"


async def _echo(daemon: Daemon, workspace: str, name: str) -> None:
    assert await daemon.call_text(workspace, name, "echo", text=name) == name


@pytest.mark.spec("lifecycle", "prepare")
async def test_a_server_that_never_answers_its_preparation_holds_up_nobody_else(
    daemon: Daemon, workspace: str
) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_attach_silent, daemon, workspace)
        with anyio.fail_after(20):
            while not any("silent" in line for line in peers_of(daemon.pid).values()):
                await anyio.sleep(0.02)
            for name in GOOD[:3]:
                await daemon.attach(workspace, scripted_definition(name, read=["echo"]))
                await _echo(daemon, workspace, name)
            detached = await daemon.act(workspace, "workspace.mcp.detach", name="silent")
            assert detached == {"status": 200, "name": "silent", "detached": True}
    assert set(await daemon.servers(workspace)) == set(GOOD[:3])


async def _attach_silent(daemon: Daemon, workspace: str) -> None:
    answer = await daemon.post(
        workspace, "workspace.mcp.attach", server=scripted_definition("silent", "silent")
    )
    assert answer.status_code >= 400, answer.text


@pytest.mark.spec("lifecycle", "limits")
async def test_a_hundred_concurrent_attaches_and_detaches_leave_what_they_say(
    daemon: Daemon, workspace: str
) -> None:
    before = set(peers_of(daemon.pid))
    with http_peer(SCRIPTED, "good") as url:
        spaces = [f"{workspace}-{number}" for number in range(10)]
        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(_come_and_go, daemon, spaces[number % 10], number, url)
        for number, space in enumerate(spaces):
            kept = {f"server-{each}" for each in range(number, 100, 10) if each % 2}
            servers = await daemon.servers(space)
            assert set(servers) == kept
            assert {server["state"] for server in servers.values()} == ({"connected"} if kept else set())
        for space in spaces:
            for name in await daemon.servers(space):
                await daemon.act(space, "workspace.mcp.detach", name=name)
    await until_gone(set(peers_of(daemon.pid)) - before)
    assert set(peers_of(daemon.pid)) <= before


async def _come_and_go(daemon: Daemon, space: str, number: int, url: str) -> None:
    """Attach one server, every fifth over stdio, and detach the even ones again."""
    name = f"server-{number}"
    definition = scripted_definition(name) if number % 5 == 0 else http_definition(name, url)
    await daemon.attach(space, definition)
    if number % 2 == 0:
        answer = await daemon.act(space, "workspace.mcp.detach", name=name)
        assert answer == {"status": 200, "name": name, "detached": True}
