"""stdio_policy.py: who may start what."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.connections.stdio_policy import startable_command
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
        startable_command(
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
    "name",
    [
        *("PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH"),
        *("HOME", "BASH_ENV", "BASH_FUNC_ls%%", "PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "GCONV_PATH"),
        *(
            "OPENSSL_CONF",
            "npm_config_script_shell",
            "GIT_SSH_COMMAND",
            "XDG_CONFIG_HOME",
            "DOTNET_STARTUP_HOOKS",
        ),
    ],
)
def test_variables_that_change_what_runs_are_refused_where_commands_are_listed(name: str) -> None:
    settings: dict[str, object] = {"stdio_commands": (sys.executable,)}
    assert setting_that_refuses(sys.executable, settings, env={name: "x"}) == "PLURNK_STDIO_COMMANDS"
    assert setting_that_refuses(sys.executable, {}, env={name: "x"}) is None
    assert (
        setting_that_refuses(
            sys.executable, settings, env={"LANG": "x", "NODE_ENV": "x", "GIT_AUTHOR_NAME": "x"}
        )
        is None
    )


def started(command: str, *, listed: tuple[str, ...], path: Path, cwd: Path | None = None) -> str:
    definition = StdioDefinition(transport="stdio", name="p", command=command)
    return startable_command(
        definition,
        "workspace",
        Settings.model_validate({"stdio_commands": listed}),
        environment={"PATH": str(path)},
        cwd=None if cwd is None else str(cwd),
    )


@pytest.mark.spec("security")
def test_what_starts_is_the_listed_file_by_its_listed_name(tmp_path: Path, executable: Bin) -> None:
    many = executable("many", directory="box")
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("ls", "sh"):
        (path / name).symlink_to(many)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "elsewhere").symlink_to(many)
    # One file behind every name: whoever may start `ls` may not start `sh` by it.
    for command in ("sh", str(path / "sh"), str(many), str(tmp_path / "lib" / "elsewhere"), "./elsewhere"):
        chosen = started(command, listed=("ls",), path=path, cwd=tmp_path / "lib")
        assert chosen == str(path / "ls"), command
    assert started("sh", listed=("ls", "sh"), path=path) == str(path / "sh")
    assert started(str(path / ".." / "bin" / "sh"), listed=("ls", "sh"), path=path) == str(path / "sh")


@pytest.mark.spec("security")
def test_without_a_list_what_starts_is_the_definitions_command(tmp_path: Path) -> None:
    definition = StdioDefinition(transport="stdio", name="p", command="x y")
    given = startable_command(definition, "workspace", Settings(), environment={}, cwd=None)
    assert given == "x y"
