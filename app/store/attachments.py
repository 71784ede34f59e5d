"""The durable map of a workspace as rows of ``server_attachments``. SPEC §effective, §state.

Functions on an open transaction; ``sql_store`` owns transactions. The definition is stored to the letter.
"""

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.sqlite import insert

from app.core.attachments import Attached, AttachmentRecord, Detached
from app.store.schema import server_attachments as table
from app.store.schema import sql
from app.store.timestamps import to_text

_WORKSPACE = table.c.workspace == bindparam("workspace")
_NEW = insert(table)
_PUT = sql(
    _NEW.on_conflict_do_update(
        index_elements=["workspace", "name"],
        set_={name: _NEW.excluded[name] for name in ("state", "definition", "updated_at")},
    )
)
_DROP = sql(delete(table).where(_WORKSPACE, table.c.name == bindparam("name")))
_LOAD = sql(select(table.c.name, table.c.definition).where(_WORKSPACE).order_by(table.c.name))
_WORKSPACES = sql(select(table.c.workspace).distinct().order_by(table.c.workspace))


def load(connection: sqlite3.Connection, workspace: str) -> Mapping[str, AttachmentRecord]:
    """Return the workspace's map, by name; empty where it has no row."""
    rows = connection.execute(_LOAD, {"workspace": workspace})
    return MappingProxyType({name: _record(text) for name, text in rows})


def apply(
    connection: sqlite3.Connection,
    workspace: str,
    name: str,
    *,
    record: AttachmentRecord | None,
    at: datetime,
) -> None:
    """Put the entry in the place of the one of its name, or drop it where ``record`` is None."""
    if record is None:
        connection.execute(_DROP, {"workspace": workspace, "name": name})
        return
    definition = record.definition if isinstance(record, Attached) else None
    state = "detached" if definition is None else "attached"
    entry = {"workspace": workspace, "name": name, "state": state, "definition": definition}
    connection.execute(_PUT, {**entry, "updated_at": to_text(at)})


def workspaces(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the workspaces with at least one row, sorted."""
    return [name for (name,) in connection.execute(_WORKSPACES)]


def _record(definition: str | None) -> AttachmentRecord:
    """Return the record of a row; a constraint ties the state to the presence of a definition."""
    return Detached() if definition is None else Attached(definition)
