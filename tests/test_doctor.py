"""``doctor`` finds what keeps a daemon from working, and makes nothing. SPEC §cli."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from app.cli.findings import Finding, Verdict
from app.doctor import examined
from tests.support.daemon import Daemon
from tests.support.peers.programs import SCRIPTED, scripted_definition

pytestmark = pytest.mark.spec("cli")


def found(tmp_path: Path, **environment: str) -> dict[str, Finding]:
    """Return the findings by subject; the home is ``tmp_path / "home"``."""
    ours = {"PLURNK_HOME": str(tmp_path / "home"), "PLURNK_PORT": "0", "PATH": os.environ["PATH"]}
    return {finding.subject: finding for finding in examined({**ours, **environment}, tmp_path, "default")}


def verdicts(findings: Mapping[str, Finding]) -> dict[str, str]:
    return {subject: str(finding.verdict) for subject, finding in findings.items()}


def test_before_the_first_start_all_is_good_and_nothing_is_made(tmp_path: Path) -> None:
    findings = found(tmp_path)
    assert verdicts(findings) == dict.fromkeys(["configuration", "home", "database", "token", "port"], "good")
    assert list(tmp_path.iterdir()) == []


def test_a_faulty_configuration_is_all_that_is_said(tmp_path: Path) -> None:
    [finding] = examined({"PLURNK_PORT": "canary"}, tmp_path, "default")
    assert (finding.subject, finding.verdict) == ("configuration", Verdict.FAULT)
    assert "PLURNK_PORT" in finding.what
    assert "canary" not in f"{finding}"


def test_a_home_that_is_no_directory_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    findings = found(tmp_path)
    assert (findings["home"].verdict, findings["home"].fix is not None) == (Verdict.FAULT, True)


def test_a_home_that_others_can_enter_is_a_warning_with_its_command(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o755)
    assert found(tmp_path)["home"].fix == f"chmod 700 {home}"
    assert home.stat().st_mode & 0o777 == 0o755


def test_a_file_that_is_no_database_is_a_fault_and_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "plurnk.db").write_bytes(b"no database " * 500)
    findings = found(tmp_path)
    assert (findings["database"].verdict, findings["home"].verdict) == (Verdict.FAULT, Verdict.GOOD)
    assert (home / "plurnk.db").read_bytes() == b"no database " * 500


def test_a_database_from_a_newer_release_is_a_fault(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    environment = {**os.environ, "PLURNK_HOME": str(home)}
    subprocess.run([sys.executable, "-m", "app", "migrate"], env=environment, check=True, timeout=60)
    assert found(tmp_path)["database"].verdict is Verdict.GOOD
    with sqlite3.connect(home / "plurnk.db") as database:
        database.execute("UPDATE alembic_version SET version_num = 'tomorrow'")
    database.close()
    assert "newer release" in found(tmp_path)["database"].what


def test_an_open_daemon_is_a_warning_and_a_token_that_no_header_carries_a_fault(tmp_path: Path) -> None:
    assert found(tmp_path, PLURNK_TOKEN="none")["token"].verdict is Verdict.WARNING
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "token").write_text("canary with blanks")
    finding = found(tmp_path)["token"]
    assert (finding.verdict, "canary" in f"{finding}") == (Verdict.FAULT, False)


def test_a_port_that_somebody_else_has_is_a_fault(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        finding = found(tmp_path, PLURNK_PORT=str(other.getsockname()[1]))["port"]
    assert (finding.verdict, "PLURNK_PORT" in finding.what) == (Verdict.FAULT, True)


def test_the_command_asks_the_running_daemon_and_exits_2_where_something_is_wrong(tmp_path: Path) -> None:
    old = {
        "PLURNK_MCP_old": sys.executable,
        "PLURNK_MCP_old_ARGS": json.dumps([str(SCRIPTED), "stdio", "old"]),
    }
    daemon = Daemon(tmp_path, {**old, "PLURNK_HYDRATION": "isolate"})
    try:
        anyio.run(daemon.start)
        anyio.run(daemon.attach, "default", scripted_definition("good"))
        with pytest.raises(subprocess.CalledProcessError) as ended:
            daemon.spawn_captured("doctor", "--json")
        told = json.loads(ended.value.stdout)
        assert (ended.value.returncode, told["kind"], told["ok"]) == (2, "doctor", False)
        seen = {each["subject"]: each for each in told["result"]["findings"]}
        assert seen["server good"]["what"] == "connected, speaks 2026-07-28"
        assert seen["server old"]["verdict"] == "fault"
        assert "2026-07-28" in seen["server old"]["what"]
        assert daemon.url in seen["port"]["what"]
        assert str(daemon.pid) in seen["home"]["what"]
        assert daemon.token not in ended.value.stdout
    finally:
        daemon.close()
