"""What exactly is started. SPEC §connection, §definition."""

import errno
import os
from pathlib import Path

import pytest

from app.connections.child_environment import (
    INHERITED,
    Program,
    child_environment,
    find_executable,
    resolve_program,
    start_failure,
)
from app.core.problems import DefinitionInvalid, ServerUnavailable

pytestmark = pytest.mark.spec("connection")


def script(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def resolve(command: str, *, cwd: str | None = None, path: str = "", args: tuple[str, ...] = ()) -> Program:
    return resolve_program("p", command=command, args=args, cwd=cwd, env={"PATH": path})


def test_a_child_gets_the_named_few_of_the_daemon_and_its_own() -> None:
    assert ", ".join(INHERITED) == "PATH, HOME, LANG, LC_ALL, LOGNAME, SHELL, TERM, TMPDIR, TZ, USER"
    daemon = {name: f"daemon {name}" for name in INHERITED} | {"API_KEY": "canary", "PLURNK_TOKEN": "canary"}
    own = {"HOME": "/elsewhere", "K": ""}
    expected = {name: f"daemon {name}" for name in INHERITED} | own
    assert child_environment(daemon, own) == expected
    assert child_environment({}, {"K": "v"}) == {"K": "v"}


def test_a_command_with_blanks_is_one_executable(tmp_path: Path) -> None:
    file = script(tmp_path / "My App" / "a server")
    program = resolve(str(file), args=("a b", ""))
    assert program == Program(str(file), ("a b", ""), None, {"PATH": ""})
    assert "a b" not in repr(program)


def test_a_bare_command_is_looked_up_on_the_childs_path(tmp_path: Path) -> None:
    script(tmp_path / "one" / "srv", mode=0o644)
    file = script(tmp_path / "two" / "srv")
    script(tmp_path / "three" / "srv")
    path = os.pathsep.join(str(tmp_path / name) for name in ("none", "one", "two", "three"))
    assert resolve("srv", path=path).executable == str(file)


def test_a_bare_command_is_never_taken_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "srv")
    monkeypatch.chdir(tmp_path)
    assert find_executable("srv", path=":.:", directory=tmp_path) is None


def test_a_relative_command_counts_from_the_childs_directory(tmp_path: Path) -> None:
    file = script(tmp_path / "bin" / "srv")
    assert resolve("bin/srv", cwd=str(tmp_path)).executable == str(file)


@pytest.mark.parametrize(
    "command, cwd, field, says",
    [
        ("/nonexistent/x", None, "command", "does not exist"),
        ("nonexistent-x", None, "command", "its whole path will do"),
        ("{tmp}/plain", None, "command", "not executable"),
        ("{tmp}", None, "command", "is a directory"),
        ("{tmp}/text", None, "command", "#! line"),
        ("{tmp}/plain/x", None, "command", "does not exist"),
        ("{tmp}/good", "/nonexistent/dir", "cwd", "does not exist"),
        ("{tmp}/good", "{tmp}/plain", "cwd", "not a directory"),
        ("/nonexistent/x", "/nonexistent/dir", "cwd", "does not exist"),
        ("{tmp}/" + "n" * 300, None, "command", "name too long"),
    ],
)
def test_the_problem_names_the_field_and_the_cause(
    tmp_path: Path, command: str, cwd: str | None, field: str, says: str
) -> None:
    script(tmp_path / "plain", mode=0o644)
    script(tmp_path / "text", "echo a shell would run this\n")
    script(tmp_path / "good")
    with pytest.raises(ServerUnavailable) as caught:
        resolve(command.format(tmp=tmp_path), cwd=cwd and cwd.format(tmp=tmp_path))
    assert caught.value.facts == {"server": "p", "transport": "stdio", "field": field}
    assert says.lower() in caught.value.detail.lower()
    assert "/nonexistent/dir" not in caught.value.detail  # an expanded value


def test_what_no_process_can_be_given_is_refused_by_pointer() -> None:
    with pytest.raises(DefinitionInvalid) as caught:
        resolve_program(
            "p",
            command="",
            args=("fine", "a\0secret"),
            cwd="\ud800",
            env={"A": "\0secret", "B=C": "x", "": "y"},
        )
    errors = caught.value.facts["errors"]
    assert isinstance(errors, list)
    assert [error["pointer"] for error in errors if isinstance(error, dict)] == [
        "/cwd",
        "/args/1",
        "/env/A",
        "/env",
        "/env",
        "/command",
    ]
    assert "secret" not in caught.value.detail


@pytest.mark.parametrize(
    "error, field",
    [
        (OSError(errno.ENOENT, "No such file or directory", "/gone"), "cwd"),
        (OSError(errno.ENOENT, "No such file or directory", "/bin/x"), "command"),
        (OSError(errno.ENOEXEC, "Exec format error", "/bin/x"), "command"),
        (OSError(errno.E2BIG, "Argument list too long", "/bin/x"), "args"),
        (OSError(errno.EAGAIN, "Resource temporarily unavailable"), None),
        (OSError(errno.EMFILE, "Too many open files"), None),
    ],
)
def test_a_start_that_the_system_refuses_blames_a_field_only_where_that_is_certain(
    error: OSError, field: str | None
) -> None:
    problem = start_failure("p", error, Program("/bin/x", (), "/gone", {}))
    facts = {"server": "p", "transport": "stdio"}
    assert problem.facts == (facts if field is None else {**facts, "field": field})
