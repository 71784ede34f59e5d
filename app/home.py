"""The daemon's own directory: who may enter, who holds it, and the small files in it. SPEC §state.

The directory is the daemon's user's alone (0700), so nobody else can plant or read anything in it. Everything
here still refuses to follow a link or to read what is not a plain file of ours, in case it was not always so.
The lock is the kernel's (flock): it goes with the process, however that ends, and the file that carries it is
never removed.
"""

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import orjson

_PRIVATE_FILE = stat.S_IRUSR | stat.S_IWUSR
_SMALL_FILE = 64 * 1024
LOCK_TRIES = 3
LOCK_PAUSE_S = 0.05
_OURS = frozenset({"plurnk.db", "token", "daemon.json", "lock", "children"})


class HomeRefused(Exception):
    """The directory cannot be used; the text is one sentence that says what to do."""


class HomeLocked(HomeRefused):
    """Another daemon holds the directory."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """A running daemon, as ``daemon.json`` has it."""

    address: str
    """The URL that it answers at."""
    pid: int


@dataclass(frozen=True, slots=True)
class Home:
    """The directory and the files in it. ``PLURNK_HOME``."""

    path: Path

    @classmethod
    def locate(cls, setting: str | None, environment: Mapping[str, str]) -> "Home":
        """Return the home that ``PLURNK_HOME`` names, else the one that the XDG base directories give.

        A relative ``XDG_STATE_HOME`` is ignored, as its specification wants.

        Raises:
            HomeRefused: neither names a directory.
        """
        if setting:
            return cls(_expanded(setting).absolute())
        state = environment.get("XDG_STATE_HOME", "")
        base = Path(state) if state.startswith("/") else _expanded("~") / ".local" / "state"
        return cls(base / "plurnk-mcpd")

    @classmethod
    @contextmanager
    def open(cls, setting: str | None, environment: Mapping[str, str]) -> Generator["Home"]:
        """Locate the home, make it ready and hold it alone until the block ends.

        Raises:
            HomeLocked: another daemon holds it.
            HomeRefused: it cannot be used.
        """
        home = cls.locate(setting, environment)
        with home.held():
            yield home

    @property
    def database(self) -> Path:
        """The default database."""
        return self.path / "plurnk.db"

    @property
    def token(self) -> Path:
        """The operator's token, where it was generated."""
        return self.path / "token"

    @property
    def daemon(self) -> Path:
        """Where the running daemon answers."""
        return self.path / "daemon.json"

    @property
    def lock(self) -> Path:
        """What the running daemon locks; holds its pid."""
        return self.path / "lock"

    @property
    def children(self) -> Path:
        """The record of child processes, for the reaper."""
        return self.path / "children"

    def ensure(self) -> None:
        """Let the directory exist, be ours and be closed to everybody else.

        A looser mode is tightened where the directory is empty or a home already; a directory that holds
        other things is somebody's (``/tmp``, a home directory), and is refused instead.

        Raises:
            HomeRefused: it cannot be used.
        """
        with self._explained():
            _make_private(self.path)
            if self.path.lstat().st_uid != os.geteuid():
                raise self._refused("belongs to another user")
            descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._close_to_others(descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def held(self) -> Generator[None]:
        """Hold the directory alone inside the block.

        Raises:
            HomeLocked: another daemon holds it.
            HomeRefused: it cannot be used.
        """
        self.ensure()
        descriptor = self._locked()
        try:
            with self._explained():
                self.daemon.unlink(missing_ok=True)
            yield
        finally:
            with suppress(OSError):
                self.daemon.unlink(missing_ok=True)
            os.close(descriptor)

    def announce(self, address: str) -> None:
        """Say where this daemon answers, for the command line; taken back when the home is let go.

        Raises:
            HomeRefused: it cannot be written.
        """
        self.write(self.daemon, orjson.dumps({"address": address, "pid": os.getpid()}) + b"\n")

    def running(self) -> Daemon | None:
        """Return the daemon that announced itself, which may be gone by now; None where none did."""
        try:
            match orjson.loads(self.read(self.daemon) or b"null"):
                case {"address": str(address), "pid": int(pid)}:
                    return Daemon(address, pid)
                case _:
                    return None
        except orjson.JSONDecodeError:
            return None

    def read(self, file: Path) -> bytes | None:
        """Return a small file of the home; None where it does not exist. Others lose their access to it.

        Raises:
            HomeRefused: it is a link, not a plain file, somebody else's or too large.
        """
        with self._explained():
            try:
                descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except FileNotFoundError:
                return None
            try:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                    raise self._refused(f"has a '{file.name}' that is not a plain file of this user")
                if stat.S_IMODE(found.st_mode) != _PRIVATE_FILE:
                    os.fchmod(descriptor, _PRIVATE_FILE)
                content = os.read(descriptor, _SMALL_FILE + 1)
            finally:
                os.close(descriptor)
        if len(content) > _SMALL_FILE:
            raise self._refused(f"has a '{file.name}' that is too large")
        return content

    def write(self, file: Path, content: bytes, *, replace: bool = True) -> bool:
        """Let the file have this content, all of it and readable by its owner only, even after a power cut.

        Returns False where ``replace`` is False and somebody made the file first; it is unchanged then.

        Raises:
            HomeRefused: it cannot be written; a file that was there is unchanged.
        """
        fresh = self.path / f".{file.name}.{secrets.token_hex(8)}"
        with self._explained():
            try:
                _write_fresh(fresh, content)
                if replace:
                    fresh.replace(file)
                else:
                    file.hardlink_to(fresh)
            except FileExistsError:
                return False
            finally:
                fresh.unlink(missing_ok=True)
            _sync_directory(self.path)
        return True

    def _close_to_others(self, directory: int) -> None:
        found = os.fstat(directory)
        if found.st_uid != os.geteuid():
            raise self._refused("belongs to another user")
        if stat.S_IMODE(found.st_mode) == stat.S_IRWXU:
            return
        entries = set(os.listdir(directory))
        if entries and not entries & _OURS:
            raise self._refused("is open to other users and holds files that are not the daemon's")
        os.fchmod(directory, stat.S_IRWXU)

    def _locked(self) -> int:
        """Return the descriptor that holds the lock; it is not inherited by children.

        Raises:
            HomeLocked: another process holds it.
        """
        with self._explained():
            descriptor = os.open(
                self.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE_FILE
            )
            try:
                _lock(descriptor)
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
            except BlockingIOError:
                holder = os.pread(descriptor, 20, 0).strip()
                os.close(descriptor)
                who = f" (pid {holder.decode()})" if holder.isdigit() else ""
                raise HomeLocked(
                    f"Another plurnk-mcpd{who} runs in {self.path}."
                    " Stop it, or give this one its own PLURNK_HOME."
                ) from None
            except BaseException:
                os.close(descriptor)
                raise
        return descriptor

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Turn what the system raises inside the block into a refusal.

        Raises:
            HomeRefused: the block failed.
        """
        try:
            yield
        except OSError as error:
            where = f" at '{Path(error.filename).name}'" if isinstance(error.filename, str) else ""
            raise self._refused(f"cannot be used ({error.strerror}{where})") from error

    def _refused(self, what: str) -> HomeRefused:
        return HomeRefused(
            f"The directory {self.path} {what}. Make it this user's alone, or name another in PLURNK_HOME."
        )


def _make_private(directory: Path) -> None:
    """Let the directory exist; what is missing above it is the owner's alone too. XDG Base Directory Specification."""
    missing = [*takewhile(lambda each: not each.exists(), (directory, *directory.parents))]
    for each in reversed(missing):
        each.mkdir(mode=stat.S_IRWXU, exist_ok=True)


def _expanded(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise HomeRefused("There is no home directory to use. Name a directory in PLURNK_HOME.") from None


def _lock(descriptor: int) -> None:
    """Take the lock; one that a command looks at for a moment is waited for.

    Raises:
        BlockingIOError: somebody else holds it.
    """
    for _ in range(LOCK_TRIES - 1):
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(LOCK_PAUSE_S)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_fresh(file: Path, content: bytes) -> None:
    """Write a file that did not exist, durably, readable by its owner only whatever the umask."""
    descriptor = os.open(
        file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE_FILE
    )
    with os.fdopen(descriptor, "wb") as opened:
        os.fchmod(descriptor, _PRIVATE_FILE)
        opened.write(content)
        opened.flush()
        os.fsync(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
