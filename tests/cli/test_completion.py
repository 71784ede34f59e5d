"""The shell completes the names of servers and tools. SPEC §cli."""

import os
import socket
import subprocess
import time
from pathlib import Path

import anyio
import pytest

from tests.cli.conftest import CLIENT
from tests.support.daemon import Daemon
from tests.support.peers.programs import scripted_definition

pytestmark = pytest.mark.spec("cli")


def completed(line: str, **environment: str) -> list[str]:
    """Return what bash is offered for the last word of a line."""
    words = line.split(" ")
    asked = {"_PLURNK_MCPD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLURNK_")}
    done = subprocess.run(
        CLIENT,
        env={**inherited, **environment, **asked},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_servers_and_tools_are_completed(daemon: Daemon) -> None:
    for name in ("notes", "numbers", "time"):
        anyio.run(daemon.attach, "full", scripted_definition(name, tools=["echo", "header"]))
    here = {"PLURNK_HOME": str(daemon.home), "PLURNK_TOKEN": daemon.token}
    assert completed("plurnk-mcpd detach -w full n", **here) == ["notes", "numbers"]
    assert completed("plurnk-mcpd call -w full ", **here) == ["notes", "numbers", "time"]
    assert completed("plurnk-mcpd call -w full time ", **here) == ["echo", "header"]
    assert completed("plurnk-mcpd call -w full nobody ", **here) == []
    assert completed("plurnk-mcpd restore -w full t", **here) == ["time"]
    assert completed("plurnk-mcpd recon", **here) == ["reconnect"]


def test_without_a_daemon_the_shell_goes_on_at_once(tmp_path: Path) -> None:
    assert completed("plurnk-mcpd detach ", PLURNK_HOME=str(tmp_path)) == []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert completed(f"plurnk-mcpd detach --url {url} ", PLURNK_HOME=str(tmp_path)) == []
        assert time.monotonic() - begun < 30
