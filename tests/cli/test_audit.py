"""``audit``: who changed what. SPEC §cli, §observe."""

import io
import json
from collections.abc import Callable
from subprocess import CompletedProcess

import anyio
import pytest
from rich.console import Console

from app.cli.audit import show_audit
from app.cli.screen import Screen
from tests.support.daemon import Daemon
from tests.support.peers.programs import scripted_definition

pytestmark = pytest.mark.spec("cli", "observe")
Run = Callable[..., CompletedProcess[str]]


def test_the_changes_of_a_workspace_are_a_table_and_json(daemon: Daemon, plurnk: Run) -> None:
    anyio.run(daemon.attach, "seen", scripted_definition("notes"))
    plurnk("detach", "absent", "-w", "seen")
    table = plurnk("audit", "-w", "seen")
    assert (table.returncode, table.stderr) == (0, "")
    lines = [line.split() for line in table.stdout.splitlines() if line.strip()]
    assert lines[0] == ["when", "token", "workspace", "action", "server", "outcome"]
    assert [line[2:] for line in lines[2:]] == [
        ["operator", "seen", "detach", "absent", "server-not-found"],
        ["operator", "seen", "attach", "notes", "ok"],
    ]
    as_json = json.loads(plurnk("audit", "-n", "1", "--json").stdout)
    assert (as_json["kind"], as_json["ok"], len(as_json["result"]["audit"])) == ("audit", True, 1)
    assert plurnk("audit", "-w", "nobody").stdout == "Nothing was changed yet.\n"
    assert plurnk("audit", "-n", "0").returncode == 2


def test_the_token_of_a_workspace_does_not_read_it(daemon: Daemon, plurnk: Run) -> None:
    token = daemon.spawn_captured("token", "--workspace", "seen")
    refused = plurnk("audit", PLURNK_TOKEN=token)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "workspace-refused" in refused.stderr


def test_a_row_without_a_server_has_a_dash() -> None:
    written = io.StringIO()
    console = Console(file=written, width=100)
    row = {
        "at": "2026-12-01T10:11:12.000001Z",
        "actor": "workspace",
        "workspace": "w",
        "kind": "odd",
        "outcome": "ok",
    }
    show_audit(Screen(console, console), {"audit": [dict(row)]})
    assert written.getvalue().split()[-7:] == ["2026-12-01", "10:11:12", "workspace", "w", "odd", "-", "ok"]
