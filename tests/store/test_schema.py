"""The schema and the migrations are the same thing. SPEC §state."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine

from app.core.names import RESERVED_SERVER_NAMES, parse_workspace_name, server_name_fault
from app.core.problem import Problem
from app.store.migrate import alembic_config, bring_to_head
from app.store.schema import HEAD, TABLES, metadata
from tests.support.databases import query


def declarations(path: Path) -> dict[str, str]:
    """Return the SQL of every table and index, without layout."""
    rows = query(
        path, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type IN ('table', 'index')"
    )
    return {name: "".join(sql.replace('"', "").split()) for name, sql in rows if name != "alembic_version"}


@pytest.mark.spec("state")
def test_the_migrations_add_up_to_the_schema_with_every_constraint(path: Path, tmp_path: Path) -> None:
    bring_to_head(path)
    declared = tmp_path / "declared.db"
    engine = create_engine(f"sqlite:///{declared}")
    metadata.create_all(engine)
    engine.dispose()
    assert {name: sorted(sql) for name, sql in declarations(path).items()} == {
        name: sorted(sql) for name, sql in declarations(declared).items()
    }


@pytest.mark.spec("state")
def test_alembic_sees_nothing_left_to_migrate(path: Path) -> None:
    bring_to_head(path)
    engine = create_engine("sqlite://", creator=lambda: sqlite3.connect(path))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


@pytest.mark.spec("state")
def test_the_head_is_the_one_newest_migration() -> None:
    assert ScriptDirectory.from_config(alembic_config()).get_heads() == [HEAD]
    assert {"server_attachments", "audit"} == TABLES


NAMES = st.one_of(
    st.text(st.sampled_from("aZ09._-é\n\x00 *["), max_size=4),
    st.text("a", min_size=60, max_size=68),
    st.text("a", min_size=126, max_size=130),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one database for all examples."""
    made = tmp_path_factory.mktemp("schema") / "plurnk.db"
    bring_to_head(made)
    return made


def accepts(path: Path, workspace: str, name: str) -> bool:
    """Whether the constraints let in a tombstone under these names."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            connection.execute(
                "INSERT INTO server_attachments VALUES (?, ?, 'detached', NULL, ?)",
                (workspace, name, "2026-11-30T00:00:00.000000Z"),
            )
        except sqlite3.IntegrityError:
            return False
        return True


def is_workspace_name(name: str) -> bool:
    try:
        parse_workspace_name(name)
    except Problem:
        return False
    return True


@pytest.mark.spec("state")
@given(name=NAMES)
def test_the_constraints_know_the_names_that_the_core_knows(migrated: Path, name: str) -> None:
    assert accepts(migrated, name, "server") == is_workspace_name(name)
    assert accepts(migrated, "w", name) == (server_name_fault(name) is None or name in RESERVED_SERVER_NAMES)


@pytest.mark.spec("state")
@pytest.mark.parametrize(
    "values",
    [
        "'w', 's', 'attached', NULL, '2026-11-30T00:00:00.000000Z'",
        "'w', 's', 'attached', x'7b7d', '2026-11-30T00:00:00.000000Z'",
        "'w', 's', 'detached', '{}', '2026-11-30T00:00:00.000000Z'",
        "'w', 's', 'lost', '{}', '2026-11-30T00:00:00.000000Z'",
        "'w', 's', NULL, NULL, '2026-11-30T00:00:00.000000Z'",
        "'w', 's', 'detached', NULL, 'yesterday'",
        "'w', 's', 'detached', NULL, NULL",
        "NULL, 's', 'detached', NULL, '2026-11-30T00:00:00.000000Z'",
        "x'77', 's', 'detached', NULL, '2026-11-30T00:00:00.000000Z'",
    ],
)
def test_a_row_that_is_neither_attached_nor_detached_is_not_let_in(migrated: Path, values: str) -> None:
    with closing(sqlite3.connect(migrated)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(f"INSERT INTO server_attachments VALUES ({values})")  # noqa: S608 the table above
