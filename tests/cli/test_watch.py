"""``watch`` against a running daemon: a screen, lines, JSON. SPEC §cli, §agui."""

import json
import os
import subprocess
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import anyio
import pytest

from tests.cli.conftest import CLIENT
from tests.support.daemon import Daemon
from tests.support.peers.programs import scripted_definition

Run = Callable[..., CompletedProcess[str]]


@pytest.mark.spec("cli", "agui")
def test_a_person_sees_the_workspace_change_and_leaves_with_ctrl_c(
    daemon: Daemon, terminal_of: Callable[..., Any]
) -> None:
    with terminal_of("watch", "-w", "seen") as person:
        person.wait_for("Nothing is attached.")
        anyio.run(daemon.attach, "seen", scripted_definition("notes"))
        person.wait_for("connected")
        anyio.run(
            lambda: daemon.act(
                "seen", "workspace.mcp.call", server="notes", tool="echo", arguments={"text": "x"}
            )
        )
        person.wait_for("Call tool 'echo' of server 'notes'?")
        person.type("\x03")
        assert person.exit_status() == 130
    assert "Traceback" not in person.screen


@pytest.mark.spec("cli")
def test_every_change_is_one_object_with_the_whole_state(daemon: Daemon) -> None:
    command = [*CLIENT, "watch", "-w", "told", "--json", "--home", str(daemon.home)]
    environment = {**os.environ, "PLURNK_TOKEN": daemon.token}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = json.loads(process.stdout.readline())
            assert {**first, "result": None} == {"kind": "workspace.mcp.watch", "ok": True, "result": None}
            assert first["result"]["state"]["servers"] == {}
            anyio.run(daemon.attach, "told", scripted_definition("notes"))
            while (
                json.loads(process.stdout.readline())["result"]["state"]["servers"]["notes"]["state"]
                != "connected"
            ):
                pass
        finally:
            process.kill()


@pytest.mark.spec("cli")
def test_lines_come_where_there_is_no_terminal_and_it_stops_when_told(daemon: Daemon, plurnk: Run) -> None:
    anyio.run(daemon.attach, "lines", scripted_definition("notes"))
    done = plurnk("watch", "-w", "lines", "--seconds", "0.01")
    assert (done.returncode, done.stdout, done.stderr) == (0, "server notes: connected, 6 tools\n", "")
    as_json = plurnk("watch", "-w", "lines", "--seconds", "0.01", "--json")
    assert json.loads(as_json.stdout.splitlines()[-1])["result"] == {"status": 200}
    assert plurnk("watch", "--seconds", "-1").returncode == 3
    assert plurnk("watch", "-w", ".bad").returncode == 3
