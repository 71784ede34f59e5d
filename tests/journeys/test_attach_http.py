"""Real servers over Streamable HTTP: attached, used in every way, detached."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest

from tests.support.daemon import Daemon, run_input
from tests.support.full_use import check_summary, use_everything
from tests.support.peers.programs import http_definition
from tests.support.processes import connections_to, until_exists

READ = ["echo", "add", "count", "fail", "hold", "header"]


@pytest.fixture(params=["sdk", "fastmcp"])
def peer(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    identity = {"sdk": ("sdk-peer", "2.3.0"), "fastmcp": ("fastmcp-peer", "4.2.3")}[request.param]
    return request.getfixturevalue(f"{request.param}_url"), dict(
        zip(("name", "version"), identity, strict=True)
    )


@pytest.mark.spec("connection", "prepare", "actions")
async def test_a_real_server_is_attached_used_and_detached(
    daemon: Daemon, workspace: str, peer: tuple[str, dict[str, str]]
) -> None:
    url, identity = peer
    summary = await daemon.attach(workspace, http_definition("notes", url, read=READ))
    check_summary(summary, name="notes", transport="http", identity=identity)
    await use_everything(daemon, workspace, "notes")
    assert await daemon.servers(workspace) == {"notes": summary}
    detached = await daemon.act(workspace, "workspace.mcp.detach", name="notes")
    assert detached == {"status": 200, "name": "notes", "detached": True}
    assert await daemon.servers(workspace) == {}


@pytest.mark.spec("calls")
async def test_a_client_that_leaves_cancels_the_call_at_the_peer(
    daemon: Daemon, workspace: str, sdk_url: str, tmp_path: Path
) -> None:
    await daemon.attach(workspace, http_definition("notes", sdk_url, read=READ))
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


@pytest.mark.spec("calls")
async def test_a_call_is_cancelled_by_its_operation_from_another_client(
    daemon: Daemon, workspace: str, sdk_url: str, tmp_path: Path
) -> None:
    await daemon.attach(workspace, http_definition("notes", sdk_url, read=READ))
    gate = tmp_path / "gate"
    action = {
        "kind": "workspace.mcp.call",
        "server": "notes",
        "tool": "hold",
        "arguments": {"gate": str(gate)},
    }
    seen = []
    async with daemon.run(run_input(workspace, action)) as events:
        async for event in events:
            seen.append(event)
            if event["type"] == "TOOL_CALL_START":
                operation = event["metadata"]["plurnk"]["operation"]
                await until_exists(gate.with_suffix(".entered"))
                answer = await daemon.act(workspace, "workspace.mcp.cancel", operation=operation)
                assert answer == {"status": 200, "operation": operation, "cancelled": True}
    assert seen[-1]["type"] == "RUN_FINISHED"
    assert seen[-1]["outcome"] == {"type": "cancelled"}
    await until_exists(gate.with_suffix(".cancelled"))


@pytest.mark.spec("lifecycle")
async def test_a_server_with_a_running_call_is_busy_and_free_afterwards(
    daemon: Daemon, workspace: str, sdk_url: str, tmp_path: Path
) -> None:
    await daemon.attach(workspace, http_definition("notes", sdk_url, read=READ))
    gate = tmp_path / "gate"
    arguments = {"gate": str(gate)}
    async with anyio.create_task_group() as group:
        group.start_soon(_expect_released, daemon, workspace, arguments)
        await until_exists(gate.with_suffix(".entered"))
        busy = await daemon.post(workspace, "workspace.mcp.detach", name="notes")
        assert (busy.status_code, busy.json()["code"]) == (409, "server-busy")
        assert len(busy.json()["operations"]) == 1
        gate.with_suffix(".open").touch()
    assert (await daemon.post(workspace, "workspace.mcp.detach", name="notes")).status_code == 200


async def _expect_released(daemon: Daemon, workspace: str, arguments: dict[str, str]) -> None:
    assert await daemon.call_text(workspace, "notes", "hold", **arguments) == "released"


@pytest.mark.spec("references")
async def test_header_and_bearer_references_reach_the_peer_alone(
    new_daemon: Callable[..., Daemon], workspace: str, sdk_url: str
) -> None:
    secrets = {"KEY": "canary-header-secret", "TOKEN": "canary-bearer-secret"}
    daemon = await new_daemon(secrets).start()
    definition = http_definition(
        "notes",
        sdk_url,
        headers={"X-Key": "key ${KEY}"},
        authorization={"type": "bearer", "token": "${TOKEN}"},
        read=READ,
    )
    summary = await daemon.attach(workspace, definition)
    assert await daemon.call_text(workspace, "notes", "header", name="X-Key") == "key canary-header-secret"
    assert (
        await daemon.call_text(workspace, "notes", "header", name="Authorization")
        == "Bearer canary-bearer-secret"
    )
    assert not any(secret in str(summary) for secret in secrets.values())


@pytest.mark.spec("connection")
async def test_detaching_the_last_server_of_an_address_leaves_no_call_and_no_socket_busy(
    daemon: Daemon, workspace: str, scripted_url: str
) -> None:
    port = urlsplit(scripted_url).port
    assert port is not None
    before = connections_to(daemon.pid, port)
    for name in ("one", "two", "three"):
        await daemon.attach(workspace, http_definition(name, scripted_url))
        await daemon.act(workspace, "workspace.mcp.detach", name=name)
    # One pool serves all connections: it may keep an idle socket, but not one for each attachment.
    assert connections_to(daemon.pid, port) <= before + 1
