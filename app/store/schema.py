"""The two tables and the revision they stand at. SPEC §state, §observe.

Migrations make the tables; this is what they add up to (a test compares the two). Constraints repeat the
rules of ``core.names``, so that a foreign hand cannot put in a row that would break more than its own
workspace.
"""

from collections.abc import Sequence

from sqlalchemy import CheckConstraint, Column, Index, Integer, MetaData, Table, Text
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import ClauseElement

HEAD = "20261130_2"
"""The revision this release works with: the newest one in ``migrations/versions``."""

metadata = MetaData()

server_attachments = Table(
    "server_attachments",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("definition", Text),
    Column("updated_at", Text, nullable=False),
    CheckConstraint(
        "typeof(workspace) = 'text' AND length(workspace) BETWEEN 1 AND 128"
        " AND workspace NOT GLOB '*[^-A-Za-z0-9._]*' AND workspace NOT GLOB '.*'"
        " AND instr(workspace, char(0)) = 0",
        name="workspace_is_a_name",
    ),
    CheckConstraint(
        "typeof(name) = 'text' AND length(name) BETWEEN 1 AND 64"
        " AND name GLOB '[a-z]*' AND name NOT GLOB '*[^-a-z0-9]*' AND instr(name, char(0)) = 0",
        name="name_is_a_server_name",
    ),
    CheckConstraint(
        "(state = 'attached' AND typeof(definition) = 'text') OR (state = 'detached' AND definition IS NULL)",
        name="only_attached_has_a_definition",
    ),
    CheckConstraint("updated_at GLOB '????-??-??T??:??:??.??????Z'", name="updated_at_is_utc"),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("workspace", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("server", Text),
    Column("outcome", Text, nullable=False),
    CheckConstraint("at GLOB '????-??-??T??:??:??.??????Z'", name="at_is_utc"),
    CheckConstraint("actor IN ('operator', 'workspace')", name="actor_is_a_kind_of_token"),
    Index("audit_at", "at"),
)

TABLES = frozenset(metadata.tables)

_DIALECT = sqlite.dialect(paramstyle="named")


def sql(statement: ClauseElement, columns: Sequence[str] | None = None) -> str:
    """Return the statement as the driver executes it, with ``:name`` for parameters; an INSERT of these columns."""
    return str(statement.compile(dialect=_DIALECT, column_keys=columns))
