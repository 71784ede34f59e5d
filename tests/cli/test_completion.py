"""The shell completes the names of servers and tools. SPEC §cli."""

import os
import socket
import subprocess
import time
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from tests.cli.conftest import CLIENT
from tests.support.daemon import Daemon
from tests.support.peers.programs import http_definition, scripted_definition
from tests.support.scripted_http import ECHO, result, scripted_http

pytestmark = pytest.mark.spec("cli")


def printed(shell: str, line: str, **environment: str) -> str:
    """Return what the program prints for a shell that asks for the last word of a line."""
    of_bash = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    of_zsh = {"_TYPER_COMPLETE_ARGS": line}
    asked = {"_PLURNK_MCPD_COMPLETE": f"complete_{shell}", **of_bash, **of_zsh}
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
    return done.stdout


def completed(line: str, **environment: str) -> list[str]:
    """Return what bash is offered for the last word of a line."""
    return printed("bash", line, **environment).split()


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


EVALUATED = (r"\$(id)", r"\`id\`", "$(id)", "`id`", "'$(id)'", '"$(id)"', "${HOME}", "a;id", "a|id", "a&id")
EXPANDED = (
    "*",
    "a b",
    "a'b",
    "~",
    "a>b",
    "{a,b}",
    "#a",
    "!id",
    "-x",
    "--yes",
    r"a\b",
    "a=b",
    "é",
    "a\u202eb",
)


@pytest.mark.spec("security")
async def test_no_shell_is_offered_a_name_that_it_would_not_take_as_it_is(daemon: Daemon) -> None:
    names = (*EVALUATED, *EXPANDED, "fs.read", "ns:get/one", "a_b-c@2")
    tools = [{**ECHO, "name": name} for name in names]
    async with scripted_http({"tools/list": result({"tools": tools})}) as peer:
        summary = await daemon.attach("hostile", http_definition("peer", peer.url))
        assert set(summary["tools"]) == set(names), "the names are good ones for the daemon"
        here = {"PLURNK_HOME": str(daemon.home), "PLURNK_TOKEN": daemon.token}
        line = "plurnk-mcpd call -w hostile peer "
        offered = {
            shell: await to_thread.run_sync(lambda shell=shell: printed(shell, line, **here))
            for shell in ("bash", "zsh")
        }
    assert offered["bash"].split() == ["a_b-c@2", "fs.read", "ns:get/one"]
    assert offered["zsh"] == """_arguments '*: :(("a_b-c@2"\n"fs.read"\n"ns\\\\:get/one"))'\n"""


def test_without_a_daemon_the_shell_goes_on_at_once(tmp_path: Path) -> None:
    assert completed("plurnk-mcpd detach ", PLURNK_HOME=str(tmp_path)) == []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert completed(f"plurnk-mcpd detach --url {url} ", PLURNK_HOME=str(tmp_path)) == []
        assert time.monotonic() - begun < 30
