"""The daemon's own commands, as processes: what they print, and with which status they end."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.configuration import FAULTS_REMEDY

pytestmark = pytest.mark.spec("cli")


def run(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run ``plurnk-mcpd`` on a home below ``tmp_path``."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLURNK_")}
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        cwd=tmp_path,
        env={**inherited, "PLURNK_HOME": str(tmp_path / "home"), "PLURNK_PORT": "0", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def told(ended: subprocess.CompletedProcess[str]) -> tuple[int, dict[str, Any]]:
    """Return the exit status and the one object that ``--json`` printed, and nothing else was."""
    assert ended.stderr == ""
    [line] = ended.stdout.splitlines()
    return ended.returncode, json.loads(line)


FAULTY = {
    "PLURNK_MCP_one": "/bin/x",
    "PLURNK_MCP_one_ARGS": '["canary',
    "PLURNK_MCP_two_ARGS": "[]",
    "PLURNK_PORT": "no-port",
}


@pytest.mark.spec("defaults")
@pytest.mark.parametrize("command", ["check", "serve", "migrate"])
def test_a_faulty_configuration_is_refused_with_every_fault_before_anything_is_opened(
    tmp_path: Path, command: str
) -> None:
    ended = run(tmp_path, command, **FAULTY)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert [line.partition(":")[0] for line in sorted(ended.stderr.splitlines())] == [
        "PLURNK_MCP_one_ARGS",
        "PLURNK_MCP_two_ARGS",
        "PLURNK_PORT",
    ]
    assert "canary" not in ended.stderr
    assert "no-port" not in ended.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.spec("defaults")
@pytest.mark.parametrize("command", ["check", "migrate", "token"])
def test_a_program_reads_every_fault_of_the_configuration(tmp_path: Path, command: str) -> None:
    status, document = told(run(tmp_path, command, "--json", **FAULTY))
    faults = document.pop("faults")
    assert (status, document) == (
        2,
        {
            "kind": command,
            "ok": False,
            "error": {"detail": "The configuration cannot be used.", "next": FAULTS_REMEDY},
        },
    )
    assert [line.partition(":")[0] for line in sorted(faults)] == [
        "PLURNK_MCP_one_ARGS",
        "PLURNK_MCP_two_ARGS",
        "PLURNK_PORT",
    ]
    assert not any("canary" in line or "no-port" in line for line in faults)
    assert not (tmp_path / "home").exists()


def test_a_program_reads_what_was_checked_made_and_printed(tmp_path: Path) -> None:
    directory = tmp_path / os.fsdecode(b"d\xff")
    directory.mkdir()
    (directory / ".env").write_text("PLURNK_MCP_docs=https://docs.example/mcp\n")
    home = str(tmp_path / "home")
    checked = run(directory, "check", "--json", PLURNK_HOME=home, PLURNK_PROT="1")
    assert checked.returncode == 0
    assert json.loads(checked.stdout) == {
        "kind": "check",
        "ok": True,
        "result": {
            "files": [f"{tmp_path}/d\\udcff/.env"],
            "defaults": ["docs"],
            "warnings": [checked.stderr.removeprefix("warning: ").rstrip()],
        },
    }
    result: object = {"database": f"{tmp_path}/d\\udcff/plurnk-mcpd/plurnk.db"}
    unnamed = {"PLURNK_HOME": "", "XDG_STATE_HOME": str(directory)}
    assert told(run(tmp_path, "migrate", "--json", **unnamed)) == (
        0,
        {"kind": "migrate", "ok": True, "result": result},
    )
    for options in ([], ["-w", "w"]):
        result = {"token": run(tmp_path, "token", *options).stdout.strip()}
        assert told(run(tmp_path, "token", "--json", *options)) == (
            0,
            {"kind": "token", "ok": True, "result": result},
        )


@pytest.mark.parametrize(
    "arguments, environment, detail",
    [
        (["migrate"], {"PLURNK_HOME": "/dev/null"}, "/dev/null"),
        (["token"], {"PLURNK_HOME": "/dev/null"}, "/dev/null"),
        (["token"], {"PLURNK_TOKEN": "none"}, "PLURNK_TOKEN=none"),
        (["token", "-w", "../x"], {}, "workspace"),
    ],
)
def test_a_program_reads_why_a_command_refused(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], detail: str
) -> None:
    status, document = told(run(tmp_path, *arguments, "--json", **environment))
    assert (status, document["kind"], document["ok"]) == (2, arguments[0], False)
    assert detail in document["error"]["detail"]
    assert document["error"]["next"]
    assert "result" not in document


@pytest.mark.spec("defaults")
def test_check_says_that_a_configuration_is_good_and_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PLURNK_MCP_docs=https://docs.example/mcp\n")
    ended = run(tmp_path, "check")
    assert (ended.returncode, ended.stderr) == (0, "")
    local = tmp_path / ".env"
    assert ended.stdout.splitlines() == [
        "The configuration is good.",
        f"Read: {local} and the environment.",
        "Service defaults: docs.",
    ]
    assert [path.name for path in tmp_path.iterdir()] == [".env"]
    local.unlink()
    ended = run(tmp_path, "check")
    assert ended.stdout.splitlines()[1:] == [
        f"Read: the environment, there is no {local}.",
        "Service defaults: none.",
    ]


@pytest.mark.spec("settings")
def test_an_unknown_setting_is_reported_and_ignored(tmp_path: Path) -> None:
    ended = run(tmp_path, "check", PLURNK_PROT="1")
    assert ended.returncode == 0
    assert "PLURNK_PROT" in ended.stderr


@pytest.mark.spec("state")
def test_migrate_makes_the_database_and_does_nothing_the_second_time(tmp_path: Path) -> None:
    assert run(tmp_path, "migrate").returncode == 0
    before = (tmp_path / "home" / "plurnk.db").read_bytes()
    assert run(tmp_path, "migrate").returncode == 0
    assert (tmp_path / "home" / "plurnk.db").read_bytes() == before


@pytest.mark.spec("state")
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    database = tmp_path / "home" / "plurnk.db"
    database.write_bytes(b"this is no database " * 500)
    for command in ("migrate", "serve"):
        ended = run(tmp_path, command)
        assert ended.returncode == 2
        assert str(database) in ended.stderr
        assert database.read_bytes() == b"this is no database " * 500
    status, document = told(run(tmp_path, "migrate", "--json"))
    assert (status, document["ok"]) == (2, False)
    assert str(database) in document["error"]["detail"]


@pytest.mark.spec("security")
def test_the_token_is_made_once_and_a_workspace_token_is_derived_from_it(tmp_path: Path) -> None:
    one, two = run(tmp_path, "token"), run(tmp_path, "token")
    assert one.returncode == 0
    assert one.stdout == two.stdout
    assert len(one.stdout.strip()) >= 32
    assert (tmp_path / "home" / "token").stat().st_mode & 0o777 == 0o600
    derived = run(tmp_path, "token", "--workspace", "w").stdout
    assert derived == run(tmp_path, "token", "-w", "w").stdout != run(tmp_path, "token", "-w", "v").stdout
    assert one.stdout.strip() not in derived


@pytest.mark.spec("security")
def test_an_open_daemon_has_no_token_and_a_bad_workspace_is_refused(tmp_path: Path) -> None:
    assert run(tmp_path, "token", PLURNK_TOKEN="none").returncode == 2
    ended = run(tmp_path, "token", "--workspace", "../x")
    assert (ended.returncode, ended.stdout) == (2, "")


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"PLURNK_TOKEN": "none", "PLURNK_STDIO_POLICY": "off", "PLURNK_REFERENCES": "[]"},
        {"PLURNK_TOKEN": "a-token-of-the-operator", "PLURNK_STDIO_POLICY": "off"},
    ],
    ids=["nothing set", "no token", "no references"],
)
def test_a_bind_beyond_loopback_needs_every_decision_made(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    ended = run(tmp_path, "check", PLURNK_HOST="0.0.0.0", **environment)
    assert ended.returncode == 2
    assert ended.stderr
