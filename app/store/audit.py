"""The append-only audit table: written once, never changed, forgotten after 90 days. SPEC §observe.

Functions on an open transaction; a trigger refuses UPDATE.
"""

from datetime import timedelta

from sqlalchemy import Connection, bindparam, delete, insert, select

from app.core.audit import AuditRow
from app.store.schema import audit as table
from app.store.timestamps import from_text, to_text

KEPT = timedelta(days=90)

# Written once: building a statement and its cache key takes longer than executing it.
_APPEND = insert(table)
_FORGET = delete(table).where(table.c.at < bindparam("before"))


def append(connection: Connection, row: AuditRow) -> None:
    """Add the row and forget those more than 90 days older than it."""
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
    connection.execute(_FORGET, {"before": to_text(row.at - KEPT)})


def rows(connection: Connection, *, limit: int, workspace: str | None) -> list[AuditRow]:
    """Return at most ``limit`` rows, the newest first, of one workspace or of all."""
    statement = (
        select(table.c.at, table.c.actor, table.c.workspace, table.c.kind, table.c.server, table.c.outcome)
        .order_by(table.c.at.desc(), table.c.id.desc())
        .limit(limit)
    )
    if workspace is not None:
        statement = statement.where(table.c.workspace == workspace)
    return [AuditRow(from_text(at), *rest) for at, *rest in connection.execute(statement)]
