"""The program knows its commands and says what each is for. SPEC §cli."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from app.cli.app import app, register

COMMANDS = ("list", "attach", "detach", "call", "demo")
DAEMON_COMMANDS = ("serve", "check", "migrate", "token")


@pytest.mark.spec("cli")
def test_the_program_names_the_daemons_commands_and_the_clients() -> None:
    command = [sys.executable, "-m", "app", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    words = {line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line.split()}
    assert {*COMMANDS, *DAEMON_COMMANDS} <= words


@pytest.mark.spec("cli")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], prog_name="plurnk-mcpd")
    assert shown.exit_code == 0
    assert f"plurnk-mcpd {command} [OPTIONS]" in shown.output


def test_the_commands_can_be_mounted_on_another_program() -> None:
    other = typer.Typer()
    register(other)
    assert {command.name for command in other.registered_commands} == set(COMMANDS)
