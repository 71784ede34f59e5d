"""Why the daemon does not start on a database, and where that database is. SPEC §state.

A refusal is for the operator at start; what goes wrong later is ``StoreUnavailable`` (``failures``).
"""

from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

_DRIVERS = frozenset({"sqlite", "sqlite+aiosqlite"})
_SHAPE = (
    "PLURNK_DATABASE_URL must name one SQLite file: a path, or sqlite+aiosqlite:////absolute/path/plurnk.db "
    "without a host, a password or options."
)


class StoreRefused(Exception):
    """The database cannot be used and was not touched; the text is one sentence that says what to do."""


def refuse(path: Path, what: str, advice: str) -> StoreRefused:
    """Return the refusal of the database at ``path``."""
    return StoreRefused(f"The database {path} {what}; it was left untouched. {advice}")


def database_path(location: str | Path) -> Path:
    """Return the absolute path of the database file that a path or a ``PLURNK_DATABASE_URL`` names.

    Only SQLite files: WAL, ``BEGIN IMMEDIATE`` and the checks at start are its own. The URL is never quoted
    back, as it may hold a password.

    Raises:
        StoreRefused: it does not name one SQLite file.
    """
    if isinstance(location, Path):
        return location.absolute()
    if "://" not in location and not location.startswith((":", "file:")) and location:
        return Path(location).absolute()
    try:
        url = make_url(location)
    except (ArgumentError, ValueError):
        raise StoreRefused(_SHAPE) from None
    is_plain = not (url.query or url.host or url.username or url.password or url.port)
    database = url.database or ""
    if url.drivername not in _DRIVERS or not is_plain or not database or database.startswith((":", "file:")):
        raise StoreRefused(_SHAPE)
    return Path(database).absolute()
