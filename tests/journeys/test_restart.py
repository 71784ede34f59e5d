"""What comes back after a restart, and how it is said where it cannot. SPEC §state, §hydration."""

import sys
from collections.abc import Callable

import pytest

from tests.support.daemon import Daemon
from tests.support.peers.programs import SCRIPTED, http_definition, http_peer, scripted_definition

# Several starts of a whole daemon, on machines that may be busy.
pytestmark = pytest.mark.timeout(180)

NewDaemon = Callable[..., Daemon]
DEFAULTS = {
    "PLURNK_MCP_BASE": sys.executable,
    "PLURNK_MCP_BASE_ARGS": f'["{SCRIPTED}", "stdio", "good"]',
    "PLURNK_MCP_BASE_READ": '["process", "variable"]',
    "PLURNK_MCP_EXTRA": sys.executable,
    "PLURNK_MCP_EXTRA_ARGS": f'["{SCRIPTED}", "stdio", "good"]',
}


def sources(servers: dict[str, dict[str, object]]) -> dict[str, tuple[object, object]]:
    return {name: (server["source"], server["state"]) for name, server in servers.items()}


@pytest.mark.spec("state", "effective", "hydration", "defaults")
async def test_attachments_replaced_defaults_and_tombstones_come_back_in_every_workspace(
    new_daemon: NewDaemon, scripted_url: str
) -> None:
    daemon = await new_daemon(DEFAULTS).start()
    await daemon.attach("one", http_definition("web", scripted_url, read=["echo"]))
    await daemon.attach("one", scripted_definition("local"))
    replaced = await daemon.act(
        "two", "workspace.mcp.replace", server=http_definition("base", scripted_url, tools=["echo"])
    )
    assert replaced["status"] == 200, replaced
    assert (await daemon.act("two", "workspace.mcp.detach", name="extra"))["detached"] is True
    before = {workspace: await daemon.servers(workspace) for workspace in ("one", "two", "three")}
    detached = {
        workspace: (await daemon.act(workspace, "workspace.mcp.list"))["detached"] for workspace in before
    }
    assert {workspace: sources(servers) for workspace, servers in before.items()} == {
        "one": {
            "base": ("service", "connected"),
            "extra": ("service", "connected"),
            "local": ("workspace", "connected"),
            "web": ("workspace", "connected"),
        },
        "two": {"base": ("workspace", "connected")},
        "three": {"base": ("service", "connected"), "extra": ("service", "connected")},
    }
    assert detached == {"one": [], "two": ["extra"], "three": []}

    assert await daemon.stop() == 0
    await daemon.start()

    assert {workspace: await daemon.servers(workspace) for workspace in before} == before
    for workspace, names in detached.items():
        assert (await daemon.act(workspace, "workspace.mcp.list"))["detached"] == names
    assert await daemon.call_text("one", "web", "echo", text="back") == "back"
    restored = await daemon.act("two", "workspace.mcp.restore", name="extra")
    assert (restored["status"], restored["server"]["source"]) == (200, "service")
    restored = await daemon.act("two", "workspace.mcp.restore", name="base")
    assert sources(await daemon.servers("two")) == sources(before["three"])


@pytest.mark.spec("references", "hydration")
async def test_a_definition_whose_reference_has_vanished_fails_its_workspace_alone_and_says_so(
    new_daemon: NewDaemon,
) -> None:
    daemon = await new_daemon({"SECRET": "canary-that-vanishes"}).start()
    await daemon.attach("one", scripted_definition("notes", env={"GIVEN": "${SECRET}"}, read=["variable"]))
    await daemon.attach("one", scripted_definition("plain", read=["echo"]))
    await daemon.attach("two", scripted_definition("plain", read=["echo"]))
    await daemon.stop()
    daemon.environment = {}
    await daemon.start()
    servers = await daemon.servers("one")
    problem = servers["notes"]["problem"]
    assert servers["notes"]["state"] == "unavailable"
    assert (problem["code"], problem["variable"], problem["retryable"]) == (
        "reference-missing",
        "SECRET",
        False,
    )
    assert "/env/GIVEN" in problem["field"] or "env" in problem["field"]
    call = await daemon.post(
        "one", "workspace.mcp.call", server="plain", tool="echo", arguments={"text": "x"}
    )
    assert (call.status_code, call.json()["code"]) == (409, "server-not-connected")
    assert await daemon.call_text("two", "plain", "echo", text="untouched") == "untouched"

    detached = await daemon.post("one", "workspace.mcp.detach", name="notes")
    assert detached.status_code == 200, detached.text
    assert await daemon.call_text("one", "plain", "echo", text="free again") == "free again"


@pytest.mark.spec("hydration")
async def test_a_server_that_is_down_at_the_restart_is_shown_so_and_kept(new_daemon: NewDaemon) -> None:
    daemon = await new_daemon({}).start()
    with http_peer(SCRIPTED, "good") as url:
        await daemon.attach("one", http_definition("web", url))
        await daemon.stop()
    await daemon.start()
    servers = await daemon.servers("one")
    assert (servers["web"]["state"], servers["web"]["source"]) == ("unavailable", "workspace")
    problem = servers["web"]["problem"]
    assert (problem["code"], problem["transport"], problem["retryable"]) == (
        "server-unavailable",
        "http",
        True,
    )


@pytest.mark.spec("hydration")
async def test_isolate_publishes_the_others_beside_a_server_that_is_down(new_daemon: NewDaemon) -> None:
    daemon = await new_daemon({"PLURNK_HYDRATION": "isolate"}).start()
    await daemon.attach("one", scripted_definition("local", read=["echo"]))
    with http_peer(SCRIPTED, "good") as url:
        await daemon.attach("one", http_definition("web", url))
        await daemon.stop()
    await daemon.start()
    assert await daemon.call_text("one", "local", "echo", text="served") == "served"
    servers = await daemon.servers("one")
    assert {name: server["state"] for name, server in servers.items()} == {
        "local": "connected",
        "web": "unavailable",
    }


@pytest.mark.spec("state")
async def test_a_second_daemon_on_the_same_home_exits_2_and_says_so(new_daemon: NewDaemon) -> None:
    daemon = await new_daemon({}).start()
    second = daemon.spawn()
    try:
        assert second.wait(timeout=20) == 2
    finally:
        second.kill()
    assert str(daemon.home) in daemon.log
    await daemon.attach("one", scripted_definition("local", read=["echo"]))
    assert await daemon.call_text("one", "local", "echo", text="undisturbed") == "undisturbed"


@pytest.mark.spec("defaults")
async def test_a_bad_environment_lists_every_fault_and_opens_nothing(new_daemon: NewDaemon) -> None:
    faulty = {
        "PLURNK_MCP_BASE": "http://user:canary-password@127.0.0.1/mcp",
        "PLURNK_MCP_BASE_ARGS": "[]",
        "PLURNK_MCP_WEB": "https://example.test/mcp",
        "PLURNK_MCP_WEB_HEADERS": "{",
        "PLURNK_MCP_LOST_ARGS": "[]",
        "PLURNK_PORT": "many",
    }
    daemon = new_daemon(faulty)
    process = daemon.spawn()
    try:
        assert process.wait(timeout=20) == 2
    finally:
        process.kill()
    for variable in ("PLURNK_MCP_BASE", "PLURNK_MCP_WEB_HEADERS", "PLURNK_MCP_LOST_ARGS", "PLURNK_PORT"):
        assert variable in daemon.log
    assert "canary-password" not in daemon.log
    assert not (daemon.home / "plurnk.db").exists()
    check = daemon.spawn("check")
    assert check.wait(timeout=20) == 2
