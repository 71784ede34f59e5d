"""stdio_policy.py: who may start what."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.connections.stdio_policy import require_startable
from app.core.definitions import StdioDefinition
from app.core.problems import StdioRefused
from app.ports import Source
from app.settings import Settings

Bin = Callable[..., Path]


@pytest.fixture
def executable(tmp_path: Path) -> Bin:
    """Make an executable in a directory of the PATH."""

    def make(name: str, *, directory: str = "bin") -> Path:
        file = tmp_path / directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
        return file

    return make


def setting_that_refuses(
    command: str,
    settings: dict[str, object],
    *,
    source: Source = "workspace",
    env: dict[str, str] | None = None,
    path: Path | None = None,
    cwd: str | None = None,
) -> object:
    definition = StdioDefinition(transport="stdio", name="p", command=command, env=env or {})
    environment = {"PATH": str(path)} if path else {}
    try:
        require_startable(
            definition, source, Settings.model_validate(settings), environment=environment, cwd=cwd
        )
    except StdioRefused as refused:
        return refused.facts["setting"]
    return None


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "policy, source, is_allowed",
    [
        ("any", "workspace", True),
        ("any", "service", True),
        ("defaults", "workspace", False),
        ("defaults", "service", True),
        ("off", "workspace", False),
        ("off", "service", False),
    ],
)
def test_the_policy_says_whose_processes_start(policy: str, source: Source, is_allowed: bool) -> None:
    refusing = setting_that_refuses(sys.executable, {"stdio_policy": policy}, source=source)
    assert refusing == (None if is_allowed else "PLURNK_STDIO_POLICY")


@pytest.mark.spec("security")
def test_listed_commands_are_compared_as_real_paths(tmp_path: Path, executable: Bin) -> None:
    good, other = executable("good"), executable("other")
    (tmp_path / "bin" / "alias").symlink_to(good)
    (tmp_path / "bin" / "masked").symlink_to(other)
    commands = {
        "good": None,
        str(good): None,
        "alias": None,
        str(tmp_path / "bin" / ".." / "bin" / "good"): None,
        "other": "PLURNK_STDIO_COMMANDS",
        "masked": "PLURNK_STDIO_COMMANDS",
        "absent": "PLURNK_STDIO_COMMANDS",
        "good --flag": "PLURNK_STDIO_COMMANDS",
        "good\0": "PLURNK_STDIO_COMMANDS",
    }
    for listed in ("good", str(good), "alias"):
        for command, refusing in commands.items():
            found = setting_that_refuses(command, {"stdio_commands": (listed,)}, path=tmp_path / "bin")
            assert found == refusing, command
    assert (
        setting_that_refuses("good", {"stdio_commands": ()}, path=tmp_path / "bin") == "PLURNK_STDIO_COMMANDS"
    )


@pytest.mark.spec("security")
def test_a_relative_command_counts_from_its_working_directory(tmp_path: Path, executable: Bin) -> None:
    good = executable("good")
    executable("good", directory="elsewhere")
    settings: dict[str, object] = {"stdio_commands": (str(good),)}
    assert setting_that_refuses("./good", settings, cwd=str(tmp_path / "bin")) is None
    assert (
        setting_that_refuses("./good", settings, cwd=str(tmp_path / "elsewhere")) == "PLURNK_STDIO_COMMANDS"
    )


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "name", ["PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH"]
)
def test_variables_that_change_what_runs_are_refused_where_commands_are_listed(name: str) -> None:
    settings: dict[str, object] = {"stdio_commands": (sys.executable,)}
    assert setting_that_refuses(sys.executable, settings, env={name: "x"}) == "PLURNK_STDIO_COMMANDS"
    assert setting_that_refuses(sys.executable, {}, env={name: "x"}) is None
    assert setting_that_refuses(sys.executable, settings, env={"HOME": "x", "NODE_ENV": "x"}) is None
