"""How a command finds the daemon and its token. SPEC §cli, §security."""

import fcntl
import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from app.cli.failures import DaemonUnreachable, UsageFault
from app.cli.target import Target, TargetOptions, default_home, find


@pytest.fixture(autouse=True)
def lock(tmp_path: Path) -> Generator[int]:
    """Hold the home as a running daemon does; give the descriptor."""
    with (tmp_path / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield held.fileno()


def announce(home: Path, **members: object) -> None:
    document = {"address": "http://127.0.0.1:3044", "pid": os.getpid(), **members}
    (home / "daemon.json").write_text(json.dumps(document))


@pytest.mark.spec("cli")
def test_a_running_daemon_is_found_through_its_home(tmp_path: Path) -> None:
    announce(tmp_path)
    (tmp_path / "token").write_text("token-of-the-home\n")
    found = find(TargetOptions(), {"PLURNK_HOME": str(tmp_path)})
    assert found == Target("http://127.0.0.1:3044", "token-of-the-home")


@pytest.mark.spec("cli")
def test_flags_win_over_the_environment_and_it_over_the_home(tmp_path: Path) -> None:
    announce(tmp_path)
    (tmp_path / "token").write_text("token-of-the-home")
    (tmp_path / "mine").write_text("  token-of-the-file\n")
    environment = {"PLURNK_HOME": "/nowhere", "PLURNK_TOKEN": "token-of-the-environment"}
    options = TargetOptions(url="http://[::1]:9/", home=tmp_path, token_file=tmp_path / "mine")
    assert find(options, environment) == Target("http://[::1]:9", "token-of-the-file")
    assert find(TargetOptions(home=tmp_path), environment).token == "token-of-the-environment"


def test_an_open_daemon_needs_no_token(tmp_path: Path) -> None:
    announce(tmp_path)
    (tmp_path / "token").write_text("old")
    assert find(TargetOptions(home=tmp_path), {"PLURNK_TOKEN": "none"}).token is None
    (tmp_path / "token").unlink()
    assert find(TargetOptions(home=tmp_path), {}).token is None


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "content",
    [None, "", "[]", "{}", '{"address": 1, "pid": 2}', '{"address": "http://x", "pid": "2"}', "{"],
)
def test_a_home_without_a_daemon_says_so(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "daemon.json").write_text(content)
    with pytest.raises(DaemonUnreachable):
        find(TargetOptions(home=tmp_path), {})


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "owner, mode",
    [
        (None, 0o770),
        (None, 0o702),
        pytest.param(65534, 0o700, marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root may give")),
    ],
)
def test_no_token_is_offered_to_who_planted_a_home(tmp_path: Path, owner: int | None, mode: int) -> None:
    announce(tmp_path)
    options, environment = TargetOptions(home=tmp_path), {"PLURNK_TOKEN": "token"}
    assert find(options, environment).token == "token"
    tmp_path.chmod(mode)
    if owner is not None:
        os.chown(tmp_path, owner, owner)
    with pytest.raises(DaemonUnreachable, match="another user"):
        find(options, environment)


@pytest.mark.spec("security")
def test_no_token_is_offered_to_the_port_of_a_daemon_that_is_gone(tmp_path: Path, lock: int) -> None:
    announce(tmp_path, pid=os.getpid())  # Another process has its pid by now.
    environment = {"PLURNK_TOKEN": "token"}
    assert find(TargetOptions(home=tmp_path), environment).token == "token"
    fcntl.flock(lock, fcntl.LOCK_UN)
    for _ in range(2):
        with pytest.raises(DaemonUnreachable):
            find(TargetOptions(home=tmp_path), environment)
        (tmp_path / "lock").unlink(missing_ok=True)


def test_a_token_file_that_cannot_be_read_is_a_usage_fault(tmp_path: Path) -> None:
    announce(tmp_path)
    with pytest.raises(UsageFault):
        find(TargetOptions(home=tmp_path, token_file=tmp_path / "absent"), {})


@pytest.mark.spec("cli")
def test_bytes_that_are_no_text_are_no_token(tmp_path: Path) -> None:
    announce(tmp_path)
    (tmp_path / "token").write_bytes(b"\xff\xfe")
    assert find(TargetOptions(home=tmp_path), {}).token is None
    with pytest.raises(UsageFault):
        find(TargetOptions(home=tmp_path, token_file=tmp_path / "token"), {})
    (tmp_path / "daemon.json").write_bytes(b"[" * 100_000)
    with pytest.raises(DaemonUnreachable):
        find(TargetOptions(home=tmp_path), {})


@pytest.mark.parametrize("token", ["two words", "new\nline", "gänsefüße"])
def test_a_token_that_no_header_carries_is_a_usage_fault_that_does_not_repeat_it(
    tmp_path: Path, token: str
) -> None:
    announce(tmp_path)
    with pytest.raises(UsageFault) as refused:
        find(TargetOptions(home=tmp_path), {"PLURNK_TOKEN": token})
    assert token not in refused.value.what + refused.value.remedy


@pytest.mark.spec("state")
@pytest.mark.parametrize(
    "environment, home",
    [
        ({"PLURNK_HOME": "/a/b"}, "/a/b"),
        ({"PLURNK_HOME": "/a/b", "XDG_STATE_HOME": "/state"}, "/a/b"),
        ({"PLURNK_HOME": "", "XDG_STATE_HOME": "/state"}, "/state/plurnk-mcpd"),
        ({"XDG_STATE_HOME": "relative"}, str(Path.home() / ".local/state/plurnk-mcpd")),
        ({}, str(Path.home() / ".local/state/plurnk-mcpd")),
    ],
)
def test_the_home_is_the_one_the_daemon_takes(environment: dict[str, str], home: str) -> None:
    assert default_home(environment) == Path(home)
