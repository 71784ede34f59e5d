"""Bringing a file to the schema of this release, all or nothing. SPEC §state."""

import os
import signal
import sqlite3
import stat
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import StaticPool
from typing_extensions import override

from app.store.examination import AtRevision, Empty, examine
from app.store.migrate import _require_wal, alembic_config, bring_to_head
from app.store.refusal import StoreRefused
from app.store.schema import HEAD, TABLES
from tests.support.databases import contents, in_child, query


def tables(path: Path) -> set[str]:
    names = {name for (name,) in query(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    return names - {"alembic_version"}


def begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def migrate_to(path: Path, revision: str) -> None:
    """Bring the database to some revision, as another release did."""
    with closing(sqlite3.connect(path, isolation_level=None)) as driver_connection:
        engine = create_engine("sqlite://", creator=lambda: driver_connection, poolclass=StaticPool)
        event.listen(engine, "begin", begin)
        with engine.begin() as connection:
            config = alembic_config()
            config.attributes["connection"] = connection
            move = command.upgrade if revision != "base" else command.downgrade
            move(config, revision)


@pytest.mark.spec("state")
def test_a_fresh_file_gets_the_whole_schema_in_wal_mode(path: Path) -> None:
    bring_to_head(path)
    assert tables(path) == TABLES
    assert query(path, "PRAGMA journal_mode") == [("wal",)]
    assert query(path, "SELECT version_num FROM alembic_version") == [(HEAD,)]
    assert examine(path) == AtRevision(HEAD)


@pytest.mark.spec("state")
def test_a_current_database_is_left_as_it_is(path: Path) -> None:
    bring_to_head(path)
    before = contents(path)
    bring_to_head(path)
    assert contents(path) == before


@pytest.mark.spec("state")
@pytest.mark.parametrize("prepare", ["touch", "half"])
def test_a_file_that_a_crash_left_without_tables_is_completed(path: Path, prepare: str) -> None:
    path.touch()
    if prepare == "half":
        query(path, "PRAGMA journal_mode=WAL")
    bring_to_head(path)
    assert tables(path) == TABLES


@pytest.mark.spec("state")
def test_an_older_database_is_brought_forward_with_its_rows(path: Path) -> None:
    migrate_to(path, "20261130_1")
    row = ("w", "s", "attached", "{}", "2026-11-30T00:00:00.000000Z")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO server_attachments VALUES (?, ?, ?, ?, ?)", row)
    bring_to_head(path)
    assert tables(path) == TABLES
    assert query(path, "SELECT * FROM server_attachments") == [row]


@pytest.mark.spec("state")
def test_every_migration_can_be_taken_back(path: Path) -> None:
    bring_to_head(path)
    migrate_to(path, "base")
    assert tables(path) == set()
    bring_to_head(path)
    assert tables(path) == TABLES


@pytest.mark.spec("state")
def test_a_newer_database_is_refused_untouched_with_advice(path: Path) -> None:
    bring_to_head(path)
    query(path, "UPDATE alembic_version SET version_num = '29990101_7'")
    before = contents(path)
    with pytest.raises(StoreRefused) as refused:
        bring_to_head(path)
    assert contents(path) == before
    assert str(path) in str(refused.value)
    assert "newer release (revision '29990101_7')" in str(refused.value)


@pytest.mark.spec("state")
def test_a_newer_database_with_a_log_is_refused_with_both_untouched(path: Path) -> None:
    bring_to_head(path)

    def work() -> None:
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE alembic_version SET version_num = '29990101_7'")
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL
    before = contents(path)
    with pytest.raises(StoreRefused, match="newer release"):
        bring_to_head(path)
    assert contents(path) == before


@pytest.mark.spec("state")
def test_a_killed_migration_leaves_nothing_half_made_at_whatever_statement(path: Path) -> None:
    statement, ended = 0, -signal.SIGKILL
    while ended == -signal.SIGKILL:
        statement += 1
        for left in path.parent.iterdir():
            left.unlink()
        ended = in_child(lambda: bring_to_head(path), die_at_statement=statement)
        assert examine(path) in (Empty(), AtRevision(HEAD))
        bring_to_head(path)
        assert tables(path) == TABLES
    assert ended == 0
    assert statement > 10


@pytest.mark.spec("state")
def test_a_migration_killed_between_two_revisions_leaves_the_older_one_whole(path: Path) -> None:
    statement, ended = 0, -signal.SIGKILL
    while ended == -signal.SIGKILL:
        statement += 1
        for left in path.parent.iterdir():
            left.unlink()
        migrate_to(path, "20261130_1")
        ended = in_child(lambda: bring_to_head(path), die_at_statement=statement)
        assert examine(path) in (AtRevision("20261130_1"), AtRevision(HEAD))
        bring_to_head(path)
        assert tables(path) == TABLES
    assert ended == 0


@pytest.mark.spec("state")
def test_daemons_that_start_at_once_on_one_fresh_file_all_find_it_whole(path: Path) -> None:
    ready, start = os.pipe(), os.pipe()
    children: list[int] = []
    for _ in range(4):
        if child := os.fork():
            children.append(child)
            continue
        status = 1
        try:
            os.close(start[1])
            os.write(ready[1], b"r")
            os.read(start[0], 1)
            bring_to_head(path)
            status = 0
        finally:
            os._exit(status)
    for _ in children:
        os.read(ready[0], 1)
    os.close(start[1])
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0, 0]
    for descriptor in (*ready, start[0]):
        os.close(descriptor)
    assert tables(path) == TABLES
    assert query(path, "SELECT version_num FROM alembic_version") == [(HEAD,)]


@pytest.mark.spec("state")
@pytest.mark.parametrize("is_current", [False, True])
def test_a_database_that_another_process_holds_is_refused_after_a_bounded_wait(
    path: Path, is_current: bool
) -> None:
    path.touch()
    if is_current:
        bring_to_head(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreRefused, match="locked by another process"):
            bring_to_head(path, timedelta(milliseconds=50))
    bring_to_head(path)
    assert tables(path) == TABLES


class BusyOnce(sqlite3.Connection):
    """Meets the lock of another connection at its first statement, and lets that one go then."""

    holder: sqlite3.Connection | None = None

    @override
    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if self.holder is None:
            return super().execute(sql, parameters)
        try:
            return super().execute("BEGIN IMMEDIATE")
        finally:
            self.holder.close()
            self.holder = None


@pytest.mark.spec("state")
@pytest.mark.parametrize("is_patient", [False, True])
def test_the_switch_to_wal_is_tried_again_while_others_hold_the_file(path: Path, is_patient: bool) -> None:
    connection = sqlite3.connect(path, isolation_level=None, timeout=0, factory=BusyOnce)
    holder = sqlite3.connect(path, isolation_level=None)
    with closing(connection), closing(holder):
        holder.execute("BEGIN IMMEDIATE")
        connection.holder = holder
        if is_patient:
            _require_wal(path, connection, timedelta(seconds=10))
            assert query(path, "PRAGMA journal_mode") == [("wal",)]
        else:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                _require_wal(path, connection, timedelta(seconds=-1))


@pytest.mark.spec("state")
def test_a_directory_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="No such file or directory"):
        bring_to_head(tmp_path / "missing" / "plurnk.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("state")
def test_the_file_and_its_log_are_the_owners_alone_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        bring_to_head(path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE alembic_version SET version_num = version_num")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"plurnk.db": 0o600, "plurnk.db-wal": 0o600, "plurnk.db-shm": 0o600}


@pytest.mark.spec("state")
def test_a_file_that_others_may_read_is_closed_to_them(path: Path) -> None:
    path.touch(0o644)
    path.chmod(0o644)
    bring_to_head(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_path_with_a_percent_sign_does_not_confuse_the_configuration() -> None:
    config = alembic_config()
    assert Path(config.get_main_option("script_location") or "").name == "migrations"
