"""The program knows its commands and says what each is for. SPEC §cli."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.cli.app import COMMANDS, app, register
from app.cli.exit_status import ExitStatus
from app.daemon_commands import register as register_daemon_commands

SPEC = (Path(__file__).parents[2] / "SPEC.md").read_text()
DAEMON_COMMANDS = ("serve", "check", "migrate", "token", "doctor")


@pytest.mark.spec("cli")
def test_the_program_names_the_daemons_commands_and_the_clients() -> None:
    command = [sys.executable, "-m", "app", "--help"]
    narrow = {**os.environ, "COLUMNS": "80"}
    shown = subprocess.run(command, env=narrow, capture_output=True, text=True, timeout=60, check=True).stdout
    words = {line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line.split()}
    assert {*COMMANDS, *DAEMON_COMMANDS} <= words
    assert "..." not in shown.split("Commands:")[1], "a summary is cut"


@pytest.mark.spec("cli")
def test_a_terminal_that_lacks_a_character_costs_no_answer(tmp_path: Path) -> None:
    poor = {**os.environ, "PYTHONIOENCODING": "ascii", "PLURNK_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "app", "list"]
    ended = subprocess.run(command, env=poor, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr.split()[0]) == (ExitStatus.UNREACHABLE, "\\u2717")


@pytest.mark.spec("cli")
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], prog_name="plurnk-mcpd")
    assert shown.exit_code == 0
    assert f"plurnk-mcpd {command} [OPTIONS]" in shown.output


def test_the_commands_can_be_mounted_on_another_program() -> None:
    other = typer.Typer()
    register(other)
    assert {command.name for command in other.registered_commands} == set(COMMANDS)


@pytest.mark.spec("cli")
def test_the_version_is_the_distributions() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert (shown.exit_code, shown.output) == (0, f"plurnk-mcpd {metadata.version('plurnk-mcpd')}\n")


@pytest.mark.spec("cli")
def test_the_specification_lists_every_command_and_every_exit_status() -> None:
    section = SPEC.split("## §cli", 1)[1]
    rows = re.findall(r"^\| (`.*?`) \|", section, flags=re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted([*COMMANDS, *DAEMON_COMMANDS])
    [statuses] = re.findall(r"^Exit status (.*?)\. ", section, flags=re.MULTILINE)
    assert [int(number) for number in re.findall(r"(?:^|, )(\d+) ", statuses)] == [*ExitStatus]


@pytest.mark.spec("cli")
def test_every_command_that_has_a_result_gives_it_as_json() -> None:
    program = typer.Typer()
    register(program)
    register_daemon_commands(program)
    group = typer.main.get_group(program)
    without = {
        name
        for name, command in group.commands.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == {"serve", "demo"}
    section = SPEC.split("## §cli", 1)[1]
    [exempt] = re.findall(r"of every command but `(\w+)`.*? and `(\w+)`,", section)
    assert {*exempt} == without
