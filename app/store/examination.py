"""What a database file is, found out without changing a byte of it or of its log. SPEC §state.

A file without a log is read in place, declared immutable, so that SQLite takes no lock and makes no file
beside it. A file with a log (the daemon was killed, or somebody has it open) is sound only together with its
log, and opening the two would recover and later fold the log into the file: so both are copied and the copy
is opened.
"""

import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.store.engine import file_uri
from app.store.refusal import StoreRefused, refuse
from app.store.schema import HEAD, TABLES

_LOGS = ("-wal", "-journal")
_VERSION_TABLE = "alembic_version"
_MAGIC = b"SQLite format 3\0"
_MOVE_AWAY = "Restore a backup, or move the file away together with its -wal file to start with an empty one."
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Empty:
    """No file, or one without any table: ours to fill."""


@dataclass(frozen=True, slots=True)
class AtRevision:
    """A sound database that a migration of this name was the last to change."""

    revision: str


def examine(path: Path) -> Empty | AtRevision:
    """Return what the file is.

    Raises:
        StoreRefused: it is not a database, damaged, half made or not ours.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        before = _signature(path)
        try:
            return _examine_once(path)
        except StoreRefused:
            # Somebody who writes meanwhile makes a torn copy of a sound file: judge only one that stood
            # still.
            if attempt == _ATTEMPTS or _signature(path) == before:
                raise
    raise AssertionError("the loop returns or raises")


def _examine_once(path: Path) -> Empty | AtRevision:
    log_sizes = {suffix: _size(path, suffix) for suffix in _LOGS}
    has_log = any(log_sizes.values())
    if not _size(path):
        if log_sizes["-wal"]:
            raise refuse(path, "is empty or missing beside a log that is not", _MOVE_AWAY)
        return Empty()
    _require_header(path, has_log=has_log, has_journal=bool(log_sizes["-journal"]))
    try:
        with _still_copy(path) if has_log else _in_place(path) as uri, closing(_connect(uri)) as connection:
            _require_sound(path, connection)
            return _judge(path, connection)
    except sqlite3.Error as error:
        raise refuse(path, f"is damaged ({error})", _MOVE_AWAY) from error
    except (
        UnicodeDecodeError
    ) as error:  # the driver cannot say what SQLite says about a name that is not text
        raise refuse(path, "is damaged (a name in it is not text)", _MOVE_AWAY) from error
    except OSError as error:
        raise refuse(
            path, f"cannot be examined ({error.strerror})", "Check its permissions and disk."
        ) from error


def _size(path: Path, suffix: str = "") -> int:
    """Return the size of the file or of a log beside it; 0 where there is none.

    Raises:
        StoreRefused: it is there and is not a regular file, or is out of reach.
    """
    beside = path.with_name(path.name + suffix)
    try:
        found = beside.stat()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise refuse(
            beside, f"cannot be reached ({error.strerror})", "Check the path and its permissions."
        ) from error
    if not stat.S_ISREG(found.st_mode):
        raise refuse(beside, "is not a regular file", "Name a file in PLURNK_DATABASE_URL.")
    return found.st_size


def _signature(path: Path) -> list[tuple[int, int] | None]:
    """Return what changes when somebody writes."""
    seen: list[tuple[int, int] | None] = []
    for suffix in ("", *_LOGS):
        try:
            found = path.with_name(path.name + suffix).stat()
        except OSError:
            seen.append(None)
        else:
            seen.append((found.st_mtime_ns, found.st_size))
    return seen


def _require_header(path: Path, *, has_log: bool, has_journal: bool) -> None:
    """Raise where the file does not begin as SQLite's do, or was cut inside a page.

    A rollback journal may bring the header back. SQLite reads a cut page as if zeros followed it, which can
    look sound; beside a log it may be one that a checkpoint was writing.
    """
    try:
        with path.open("rb") as file:
            header = file.read(18)
        size = path.stat().st_size
    except OSError as error:
        raise refuse(path, f"cannot be read ({error.strerror})", "Check its permissions.") from error
    if not header.startswith(_MAGIC) and not has_journal:
        raise refuse(path, "is not an SQLite database", _MOVE_AWAY)
    page_size = int.from_bytes(header[16:18], "big")
    if not has_log and size % (65536 if page_size <= 1 else page_size):
        raise refuse(path, "is cut short", _MOVE_AWAY)


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return connection


@contextmanager
def _in_place(path: Path) -> Generator[str]:
    """Give the URI of the file itself, which has no log."""
    yield file_uri(path, "mode=ro&immutable=1")


@contextmanager
def _still_copy(path: Path) -> Generator[str]:
    """Give the URI of a copy of the file and its logs that lasts as long as the block."""
    with tempfile.TemporaryDirectory(prefix="plurnk-mcpd-") as directory:
        copy = Path(directory) / "copy.db"
        for suffix in ("", *_LOGS):
            source = path.with_name(path.name + suffix)
            if source.exists():
                shutil.copyfile(source, copy.with_name(copy.name + suffix))
        yield file_uri(copy, "mode=rw")


def _require_sound(path: Path, connection: sqlite3.Connection) -> None:
    """Raise where SQLite finds a fault: in the structure of anything, in an index of what must survive."""
    for check in ("PRAGMA quick_check(1)", "PRAGMA integrity_check(server_attachments)"):
        if check.startswith("PRAGMA integrity") and "server_attachments" not in _objects(connection):
            continue
        if (verdict := connection.execute(check).fetchone()[0]) != "ok":
            raise refuse(path, f"is damaged ({str(verdict).splitlines()[0][:200]})", _MOVE_AWAY)


def _objects(connection: sqlite3.Connection) -> set[str]:
    """Return the names of every table, view, index and trigger but SQLite's own."""
    rows = connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {name for (name,) in rows}


def _judge(path: Path, connection: sqlite3.Connection) -> Empty | AtRevision:
    """Return what a sound database is.

    Our migrations are one transaction, so tables without a revision were never made by us, or not by us
    alone.

    Raises:
        StoreRefused: it is half made or somebody else's.
    """
    objects = _objects(connection)
    if not objects:
        return Empty()
    if _VERSION_TABLE not in objects:
        raise refuse(path, "has tables but no record of who made them", _MOVE_AWAY)
    revisions = [revision for (revision,) in connection.execute("SELECT version_num FROM alembic_version")]
    if not revisions and objects == {_VERSION_TABLE}:
        return Empty()
    if len(revisions) != 1 or not isinstance(revisions[0], str):
        raise refuse(path, "is half made", _MOVE_AWAY)
    if revisions[0] == HEAD and not objects >= TABLES:
        raise refuse(path, f"lacks the table {min(TABLES - objects)}", _MOVE_AWAY)
    return AtRevision(revisions[0])
