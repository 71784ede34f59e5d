"""Bring a database file to the schema of this release, all or nothing. SPEC §state.

Every migration that is missing runs inside one ``BEGIN IMMEDIATE`` transaction, which also reads the
revision: two daemons that start at once wait for each other, and one that is killed leaves the file as it
was. SQLite's DDL is transactional; the driver is kept from committing before it (``isolation_level=None``).
"""

import os
import sqlite3
import stat
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from app import shipped
from app.store.engine import BUSY, PRAGMAS, file_uri
from app.store.examination import AtRevision, Empty, examine
from app.store.failures import DAMAGED, LOCKED, kind_of
from app.store.refusal import refuse
from app.store.schema import HEAD

if TYPE_CHECKING:
    from alembic.config import Config

_PRIVATE = stat.S_IRUSR | stat.S_IWUSR
_NEWER = "Start the release that wrote it, or a newer one; going back to an older release needs a backup."


def bring_to_head(path: Path, busy: timedelta = BUSY) -> None:
    """Let the file at ``path`` be a sound database at ``HEAD``, in WAL mode, readable by its owner only.

    Blocks: call it in a thread.

    Raises:
        StoreRefused: the file is not ours to change, and was not.
    """
    found = examine(path)
    require_known(path, found)
    with _refusing(path):
        _make_private(path)
        with closing(
            sqlite3.connect(
                file_uri(path, "mode=rw"), uri=True, isolation_level=None, timeout=busy.total_seconds()
            )
        ) as connection:
            for pragma in PRAGMAS:
                connection.execute(pragma)
            _require_wal(path, connection, busy)
            if found == AtRevision(HEAD):
                _require_writable(connection)
            else:
                upgrade(connection)


def upgrade(connection: sqlite3.Connection) -> None:
    """Run every missing migration in one transaction on a connection in autocommit mode."""
    from alembic import command  # noqa: PLC0415 a third of a second, wanted only to migrate

    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    event.listen(engine, "begin", _begin)
    with engine.begin() as transaction:
        config = alembic_config()
        config.attributes["connection"] = transaction
        command.upgrade(config, "head")


def alembic_config() -> "Config":
    """Return Alembic's configuration of the shipped migrations; no alembic.ini is read."""
    from alembic.config import Config  # noqa: PLC0415 see upgrade

    config = Config()
    config.set_main_option("script_location", str(shipped.path("migrations")).replace("%", "%%"))
    return config


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def require_known(path: Path, found: Empty | AtRevision) -> None:
    """Raise where the revision is none of this release's."""
    if isinstance(found, Empty) or found.revision == HEAD:
        return
    from alembic.script import ScriptDirectory  # noqa: PLC0415 see upgrade

    known = {script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()}
    if found.revision not in known:
        raise refuse(path, f"is from a newer release (revision '{found.revision[:40]}')", _NEWER)


def _make_private(path: Path) -> None:
    """Create the file where it is missing; let its owner alone read it and its log."""
    # SQLite gives a new log the mode of its database.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
    os.close(descriptor)
    for suffix in ("", "-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        try:
            if stat.S_IMODE(beside.stat().st_mode) != _PRIVATE:
                beside.chmod(_PRIVATE)
        except FileNotFoundError:
            continue


def _require_wal(path: Path, connection: sqlite3.Connection, busy: timedelta) -> None:
    """Raise where the file cannot be in WAL mode; retry while another process changes its mode.

    SQLite does not call the busy handler for this switch, so the wait is ours.
    """
    deadline = time.monotonic() + busy.total_seconds()
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if kind_of(error) != LOCKED or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
            continue
        if mode != "wal":
            raise refuse(path, "is on a file system without write-ahead logging", "Put it on a local disk.")
        return


def _require_writable(connection: sqlite3.Connection) -> None:
    """Raise where writing is impossible: at start, not at the first change."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("ROLLBACK")


@contextmanager
def _refusing(path: Path) -> Generator[None]:
    """Turn what the database or the system raises inside the block into a refusal.

    Raises:
        StoreRefused: the block failed.
    """
    advice = "Make sure that nobody else uses it, that it may be written and that the disk has room."
    try:
        yield
    except DBAPIError as error:
        raise refuse(path, f"cannot be opened: {kind_of(error.orig)}", advice) from error
    except sqlite3.Error as error:
        raise refuse(path, f"cannot be opened: {kind_of(error)}", advice) from error
    except UnicodeDecodeError as error:
        raise refuse(path, f"cannot be opened: {DAMAGED}", advice) from error
    except OSError as error:
        raise refuse(path, f"cannot be opened: {error.strerror}", advice) from error
