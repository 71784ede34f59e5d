"""The append-only audit table: written once, never changed, forgotten after 90 days. SPEC §observe.

Functions on an open transaction; a trigger refuses UPDATE.
"""

import sqlite3
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, insert, literal_column, select

from app.core.audit import AuditRow
from app.core.problems import StoreUnavailable
from app.store.schema import audit as table
from app.store.schema import sql
from app.store.timestamps import from_text, to_text

KEPT = timedelta(days=90)
FOREIGN = "the audit table holds a row that is not ours"

_COLUMNS = ("at", "actor", "workspace", "kind", "server", "outcome")
_APPEND = sql(insert(table), _COLUMNS)
_FORGET = sql(delete(table).where(table.c.at < bindparam("before")))
_ALL = (
    select(*(table.c[name] for name in _COLUMNS))
    .order_by(table.c.id.desc())
    .limit(bindparam("limit"))
    .offset(literal_column("0"))
)
_ROWS = sql(_ALL)
_ROWS_OF_ONE = sql(_ALL.where(table.c.workspace == bindparam("workspace")))


def append(connection: sqlite3.Connection, row: AuditRow, *, now: datetime) -> None:
    """Add the row and forget those that are more than 90 days old by now, which need not be the row's own time."""
    connection.execute(
        _APPEND,
        {
            "at": to_text(row.at),
            "actor": row.actor,
            "workspace": row.workspace,
            "kind": row.kind,
            "server": row.server,
            "outcome": row.outcome,
        },
    )
    connection.execute(_FORGET, {"before": to_text(now - KEPT)})


def rows(connection: sqlite3.Connection, *, limit: int, workspace: str | None) -> list[AuditRow]:
    """Return at most ``limit`` rows, the last written first, of one workspace or of all.

    A wall clock may be set back: what is written then comes first all the same.

    Raises:
        StoreUnavailable: one of them was not written by us; none is left out in silence.
    """
    statement = _ROWS if workspace is None else _ROWS_OF_ONE
    try:
        found = connection.execute(statement, {"limit": limit, "workspace": workspace})
        return [_row(*values) for values in found]
    except ValueError as error:
        raise StoreUnavailable(FOREIGN) from error


def _row(at: str, *rest: object) -> AuditRow:
    """Return the row of its columns, which a foreign hand may have filled.

    Raises:
        ValueError: one holds no text, or no instant.
    """
    actor, workspace, kind, server, outcome = (each if isinstance(each, str) else None for each in rest)
    if actor is None or workspace is None or kind is None or outcome is None or server != rest[3]:
        raise ValueError("a column holds no text")
    return AuditRow(from_text(at), actor, workspace, kind, server, outcome)
