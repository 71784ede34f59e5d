"""The daemon's directory: whose it is, who holds it, what it keeps. SPEC §state."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from app.home import Daemon, Home, HomeLocked, HomeRefused

HOLD = """
import os, subprocess, sys
from app.home import Home

with Home.open(sys.argv[1], {}) as home:
    home.announce("http://127.0.0.1:1")
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    print("held", flush=True)
    sys.stdin.readline()
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Make a home that nobody holds."""
    made = Home(tmp_path / "home")
    made.ensure()
    return made


@pytest.mark.spec("state")
@pytest.mark.parametrize(
    "setting, environment, expected",
    [
        ("/srv/plurnk", {"XDG_STATE_HOME": "/x"}, Path("/srv/plurnk")),
        ("here", {}, Path.cwd() / "here"),
        ("~/there", {}, Path("~/there").expanduser()),
        (None, {"XDG_STATE_HOME": "/x/state"}, Path("/x/state/plurnk-mcpd")),
        (None, {"XDG_STATE_HOME": "relative"}, Path("~/.local/state/plurnk-mcpd").expanduser()),
        (None, {"XDG_STATE_HOME": ""}, Path("~/.local/state/plurnk-mcpd").expanduser()),
        ("", {}, Path("~/.local/state/plurnk-mcpd").expanduser()),
    ],
)
def test_the_home_is_where_the_setting_or_the_base_directories_say(
    setting: str | None, environment: dict[str, str], expected: Path
) -> None:
    assert Home.locate(setting, environment) == Home(expected)


@pytest.mark.spec("state")
def test_a_home_of_nobody_is_refused_with_advice() -> None:
    with pytest.raises(HomeRefused, match="PLURNK_HOME"):
        Home.locate("~no-such-user/x", {})


@pytest.mark.spec("state")
def test_its_files_have_fixed_names() -> None:
    home = Home(Path("/h"))
    files = (home.database, home.token, home.daemon, home.lock, home.children)
    assert [file.name for file in files] == ["plurnk.db", "token", "daemon.json", "lock", "children"]
    assert {file.parent for file in files} == {Path("/h")}


@pytest.mark.spec("state")
def test_a_fresh_home_and_its_files_are_the_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Home.open(str(tmp_path / "a" / "b"), {}) as home:
            home.announce("http://127.0.0.1:3044")
            home.write(home.token, b"t")
            modes = {
                path.name: mode(path)
                for path in (home.path.parent, home.path, home.lock, home.daemon, home.token)
            }
    finally:
        os.umask(before)
    assert modes == {"a": 0o700, "b": 0o700, "lock": 0o600, "daemon.json": 0o600, "token": 0o600}


@pytest.mark.spec("state")
def test_a_tight_umask_does_not_lock_the_owner_out(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        home = Home(tmp_path)
        home.write(home.token, b"t")
    finally:
        os.umask(before)
    assert mode(home.token) == 0o600


@pytest.mark.spec("state")
@pytest.mark.parametrize("inside", [None, "plurnk.db", "lock"])
def test_a_looser_home_is_tightened(tmp_path: Path, inside: str | None) -> None:
    tmp_path.chmod(0o755)
    if inside:
        (tmp_path / inside).touch()
        (tmp_path / "unrelated").touch()
    Home(tmp_path).ensure()
    assert mode(tmp_path) == 0o700


@pytest.mark.spec("state")
def test_a_directory_of_others_things_is_refused_and_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "somebodys.txt").touch()
    tmp_path.chmod(0o1777)
    with pytest.raises(HomeRefused, match="PLURNK_HOME"):
        Home(tmp_path).ensure()
    assert mode(tmp_path) == 0o1777


@pytest.mark.spec("state")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_or_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    theirs, ours, link = tmp_path / "theirs", tmp_path / "ours", tmp_path / "link"
    theirs.mkdir(0o700)
    ours.mkdir(0o700)
    link.symlink_to(ours)
    os.chown(theirs, 65534, 65534)
    os.chown(link, 65534, 65534, follow_symlinks=False)
    for path in (theirs, link):
        with pytest.raises(HomeRefused, match="belongs to another user"):
            Home(path).ensure()


@pytest.mark.spec("state")
def test_a_link_of_ones_own_leads_to_the_home(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    Home(tmp_path / "link").ensure()
    assert mode(tmp_path / "real") == 0o700


@pytest.mark.spec("state")
def test_a_home_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(HomeRefused, match=r"Not a directory|File exists"):
            Home(path).ensure()


@pytest.mark.spec("state")
def test_a_second_daemon_on_the_same_home_is_told_who_holds_it(home: Home) -> None:
    with home.held(), pytest.raises(HomeLocked) as refused, Home.open(str(home.path), {}):
        pytest.fail("it was held twice")
    assert f"(pid {os.getpid()}) runs in {home.path}" in str(refused.value)
    with home.held():
        pass


@pytest.mark.spec("state")
def test_a_command_that_looks_at_the_lock_does_not_keep_a_daemon_from_starting(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.ensure()
    with home.lock.open("w") as looking:
        fcntl.flock(looking, fcntl.LOCK_SH)

        def looked(_seconds: float) -> None:
            fcntl.flock(looking, fcntl.LOCK_UN)

        monkeypatch.setattr("time.sleep", looked)
        with home.held():
            pass


@pytest.mark.spec("state")
def test_a_refused_second_daemon_takes_nothing_away(home: Home) -> None:
    with home.held():
        home.announce("http://127.0.0.1:3044")
        with pytest.raises(HomeLocked), home.held():
            pass
        assert home.running() == Daemon("http://127.0.0.1:3044", os.getpid())


@pytest.mark.spec("state")
def test_a_killed_daemon_frees_its_home_even_while_a_child_of_it_lives(home: Home) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path.cwd(),
    ) as daemon:
        assert daemon.stdout is not None
        assert daemon.stdout.readline() == b"held\n"
        with pytest.raises(HomeLocked, match=f"pid {daemon.pid}"), home.held():
            pass
        assert home.running() == Daemon("http://127.0.0.1:1", daemon.pid)
        daemon.send_signal(signal.SIGKILL)
        daemon.wait()
        with home.held():
            assert home.running() is None


@pytest.mark.spec("state")
def test_the_announcement_is_one_json_object_and_goes_with_the_daemon(home: Home) -> None:
    with home.held():
        assert home.running() is None
        home.announce("http://127.0.0.1:3044")
        assert orjson.loads(home.daemon.read_bytes()) == {
            "address": "http://127.0.0.1:3044",
            "pid": os.getpid(),
        }
        home.announce("http://127.0.0.1:3045")
        assert home.running() == Daemon("http://127.0.0.1:3045", os.getpid())
    assert home.running() is None
    assert sorted(file.name for file in home.path.iterdir()) == ["lock"]


@pytest.mark.spec("state")
def test_the_announcement_goes_when_the_daemon_fails_too(home: Home) -> None:
    def fail() -> None:
        with home.held():
            home.announce("http://127.0.0.1:3044")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert home.running() is None


@pytest.mark.spec("state")
@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"[]", b'{"address": 1, "pid": 2}', b'{"pid": 1}', b"\xff"]
)
def test_a_garbled_announcement_is_none(home: Home, content: bytes) -> None:
    home.write(home.daemon, content)
    assert home.running() is None


@pytest.mark.spec("state")
def test_a_file_is_replaced_whole_or_left(home: Home) -> None:
    assert home.read(home.token) is None
    assert home.write(home.token, b"first", replace=False)
    assert not home.write(home.token, b"second", replace=False)
    assert home.read(home.token) == b"first"
    assert home.write(home.token, b"third")
    assert home.read(home.token) == b"third"
    assert [file.name for file in home.path.iterdir()] == ["token"]


@pytest.mark.spec("state")
def test_a_write_that_fails_leaves_no_trace(home: Home) -> None:
    home.token.mkdir()
    with pytest.raises(HomeRefused, match="Is a directory"):
        home.write(home.token, b"t")
    assert [file.name for file in home.path.iterdir()] == ["token"]


@pytest.mark.spec("security")
@pytest.mark.parametrize("kind", ["link", "fifo", "directory", "large"])
def test_only_a_small_plain_file_is_read(home: Home, tmp_path: Path, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"secret")
    match kind:
        case "link":
            home.token.symlink_to(elsewhere)
        case "fifo":
            os.mkfifo(home.token)
        case "directory":
            home.token.mkdir()
        case _:
            home.token.write_bytes(b"x" * 70_000)
    with pytest.raises(HomeRefused, match="token"):
        home.read(home.token)


@pytest.mark.spec("security")
def test_a_planted_link_is_neither_locked_nor_written_through(home: Home, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"theirs")
    home.lock.symlink_to(elsewhere)
    with pytest.raises(HomeRefused), home.held():
        pass
    home.daemon.symlink_to(elsewhere)
    home.announce("http://127.0.0.1:3044")
    assert not home.daemon.is_symlink()
    assert elsewhere.read_bytes() == b"theirs"


@pytest.mark.spec("security")
def test_a_file_that_others_may_read_is_closed_to_them(home: Home) -> None:
    home.token.write_bytes(b"t")
    home.token.chmod(0o644)
    assert home.read(home.token) == b"t"
    assert mode(home.token) == 0o600
