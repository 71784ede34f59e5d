"""The program knows its commands and says what each is for. SPEC §cli."""

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

Run = Callable[..., CompletedProcess[str]]
COMMANDS = ("serve", "check", "migrate", "token", "list", "attach", "detach", "call", "demo")


@pytest.mark.spec("cli")
def test_help_names_every_command(plurnk: Run) -> None:
    shown = plurnk("--help")
    assert shown.returncode == 0
    words = {line.split()[0] for line in shown.stdout.splitlines() if line.startswith("  ") and line.split()}
    assert set(COMMANDS) <= words


@pytest.mark.spec("cli")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(plurnk: Run, command: str) -> None:
    shown = plurnk(command, "--help")
    assert shown.returncode == 0
    assert f"{command} [OPTIONS]" in shown.stdout
