"""What a failing database is called: SQLite's result codes as ``StoreUnavailable``, in words. SPEC §problems.

The words name the kind of failure, never a path, a statement or a value.
"""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError

from app.core.problems import StoreUnavailable

LOCKED = "it is locked by another process"
DAMAGED = "the file is damaged"

_KINDS = {
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "the file is read-only",
    "SQLITE_IOERR": "reading or writing the file failed",
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_NOTADB": DAMAGED,
    "SQLITE_CANTOPEN": "the file cannot be opened",
    "SQLITE_PERM": "the file cannot be opened",
    "SQLITE_NOMEM": "memory is exhausted",
}


def kind_of(error: BaseException | None) -> str:
    """Return the words for a driver's error by its primary result code."""
    name = getattr(error, "sqlite_errorname", None)
    if not isinstance(name, str):
        return "the database failed"
    primary = "_".join(name.split("_")[:2])
    return _KINDS.get(primary, "the database failed")


def is_busy(error: DBAPIError | sqlite3.Error) -> bool:
    """Whether the connection is as good as before: somebody else held the lock."""
    return kind_of(error.orig if isinstance(error, DBAPIError) else error) == LOCKED


@contextmanager
def unavailable() -> Generator[None]:
    """Turn what the database raises inside the block into ``StoreUnavailable``.

    A violated constraint is not the database's failure but a bug of the caller, and stays what it is.

    Raises:
        StoreUnavailable: the block failed in the database.
    """
    try:
        yield
    except (IntegrityError, sqlite3.IntegrityError):
        raise
    except DBAPIError as error:
        raise StoreUnavailable(kind_of(error.orig)) from error
    except sqlite3.Error as error:
        raise StoreUnavailable(kind_of(error)) from error
    except UnicodeDecodeError as error:
        # The driver cannot repeat what SQLite says about a name that is not text.
        raise StoreUnavailable(DAMAGED) from error
