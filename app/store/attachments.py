"""The durable map of a workspace as rows of ``server_attachments``. SPEC §effective, §state.

Functions on an open transaction; ``sql_store`` owns transactions. The definition is stored to the letter.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from app.core.attachments import Attached, AttachmentRecord, Detached
from app.store.schema import server_attachments as table
from app.store.timestamps import to_text


def load(connection: Connection, workspace: str) -> Mapping[str, AttachmentRecord]:
    """Return the workspace's map, by name; empty where it has no row."""
    statement = (
        select(table.c.name, table.c.definition).where(table.c.workspace == workspace).order_by(table.c.name)
    )
    return MappingProxyType({name: _record(text) for name, text in connection.execute(statement)})


def apply(
    connection: Connection, workspace: str, name: str, *, record: AttachmentRecord | None, at: datetime
) -> None:
    """Put the entry in the place of the one of its name, or drop it where ``record`` is None."""
    if record is None:
        connection.execute(delete(table).where(table.c.workspace == workspace, table.c.name == name))
        return
    definition = record.definition if isinstance(record, Attached) else None
    state = "detached" if definition is None else "attached"
    values = {"state": state, "definition": definition, "updated_at": to_text(at)}
    statement = insert(table).values(workspace=workspace, name=name, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["workspace", "name"], set_=values))


def workspaces(connection: Connection) -> list[str]:
    """Return the names of the workspaces with at least one row, sorted."""
    return list(connection.scalars(select(table.c.workspace).distinct().order_by(table.c.workspace)))


def _record(definition: str | None) -> AttachmentRecord:
    """Return the record of a row; a constraint ties the state to the presence of a definition."""
    return Detached() if definition is None else Attached(definition)
