"""Published servers, each in its own environment: the modern attach, the legacy do not. SPEC §revision."""

import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.official_client import NODE, npm_install
from tests.support.processes import children, command_lines, until_gone
from tests.support.standing import stored

pytestmark = [pytest.mark.peers, pytest.mark.timeout(600)]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One loop for the module's daemon."""
    return "asyncio"


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One running daemon for all of them."""
    daemon = Daemon(tmp_path_factory.mktemp("daemon"))
    try:
        yield await daemon.start()
    finally:
        daemon.close()


def environment_with(directory: Path, *requirements: str) -> Path:
    """Return the Python of a fresh environment that has the packages."""
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    python = directory / "bin" / "python"
    options = ["--quiet", "--quiet", "--disable-pip-version-check"]
    subprocess.run([str(python), "-m", "pip", "install", *options, *requirements], check=True)
    return python


def time_server(directory: Path, *requirements: str) -> dict[str, Any]:
    """Return the definition of the published time server in this version."""
    python = environment_with(directory, *requirements)
    return {
        "name": "time",
        "transport": "stdio",
        "command": str(python),
        "args": ["-m", "mcp_server_time", "--local-timezone", "UTC"],
        "read": ["convert_time"],
    }


def everything_server(directory: Path) -> dict[str, Any]:
    """Return the definition of the published everything server, which speaks legacy revisions."""
    directory.mkdir()
    (directory / "package.json").write_text('{"name": "peer", "private": true}')
    npm_install(directory, "@modelcontextprotocol/server-everything@2026.8.31")
    program = directory / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    return {"name": "everything", "transport": "stdio", "command": str(NODE), "args": [str(program), "stdio"]}


@pytest.mark.spec("revision", "prepare")
async def test_the_newest_time_server_attaches_answers_and_comes_back(daemon: Daemon, tmp_path: Path) -> None:
    server = await daemon.attach("w", time_server(tmp_path / "venv", "mcp-server-time"))
    assert (server["state"], server["protocolVersion"]) == ("connected", "2026-07-28")
    assert server["tools"] == ["get_current_time", "convert_time"]
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    assert "21:00" in await daemon.call_text("w", "time", "convert_time", **arguments)
    assert await daemon.stop() == 0
    await daemon.start()
    assert "21:00" in await daemon.call_text("w", "time", "convert_time", **arguments)
    assert (await daemon.act("w", "workspace.mcp.detach", name="time"))["detached"] is True


@pytest.mark.spec("revision", "problems")
@pytest.mark.parametrize("package", ["mcp-server-time==2025.9.25", "server-everything 2026.8.31"])
async def test_a_legacy_server_is_refused_for_good_and_leaves_nothing(
    daemon: Daemon, tmp_path: Path, package: str
) -> None:
    if package.startswith("mcp-server-time"):
        # That release sets no upper bound, and does not start on an SDK from after its time.
        definition = time_server(tmp_path / "peer", package, "mcp<2")
    else:
        definition = everything_server(tmp_path / "peer")
    rows, before = stored(daemon), children(daemon.pid)
    response = await daemon.post("w", "workspace.mcp.attach", server=definition)
    problem = response.json()
    assert response.status_code == 502, problem
    assert {name: problem[name] for name in ("code", "retryable", "server", "transport")} == {
        "code": "protocol-revision-unsupported",
        "retryable": False,
        "server": definition["name"],
        "transport": "stdio",
    }
    assert (problem["requiredRevision"], problem["requiredMethod"]) == ("2026-07-28", "server/discover")
    left = {
        pid for pid, line in command_lines(children(daemon.pid) - before).items() if str(tmp_path) in line
    }
    await until_gone(left)
    assert stored(daemon) == rows
    assert await daemon.servers("w") == {}
