"""How SQLite's failures are told. SPEC §problems."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError, OperationalError

from app.core.problems import StoreUnavailable
from app.store.failures import LOCKED, is_busy, kind_of, unavailable


def provoke(path: Path, *statements: str) -> sqlite3.Error:
    """Return what SQLite raises for the last of the statements."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as connection:
        for statement in statements[:-1]:
            connection.execute(statement)
        with pytest.raises(sqlite3.Error) as raised:
            connection.execute(statements[-1])
    return raised.value


@pytest.mark.spec("problems")
def test_a_lock_a_full_disk_a_read_only_and_a_damaged_file_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("CREATE TABLE t (x)")
        holder.execute("BEGIN IMMEDIATE")
        locked = provoke(path, "BEGIN IMMEDIATE")
    full = provoke(path, "PRAGMA max_page_count=2", "INSERT INTO t VALUES (zeroblob(100000))")
    read_only = provoke(path, "PRAGMA query_only=ON", "INSERT INTO t VALUES (1)")
    path.write_bytes(b"x" * 8192)
    damaged = provoke(path, "SELECT * FROM t")
    missing = provoke(path, "ATTACH '/nowhere/at/all.db' AS other")

    assert [kind_of(error) for error in (locked, full, read_only, damaged, missing)] == [
        LOCKED,
        "the disk is full",
        "the file is read-only",
        "the file is damaged",
        "the file cannot be opened",
    ]


@pytest.mark.spec("problems")
def test_an_error_without_a_known_code_is_the_databases_all_the_same() -> None:
    assert kind_of(ValueError("no active connection")) == "the database failed"
    assert kind_of(None) == "the database failed"


@pytest.mark.spec("problems")
def test_a_failure_becomes_store_unavailable_without_statement_path_or_value(tmp_path: Path) -> None:
    error = provoke(tmp_path / "x.db", "SELECT * FROM canary")
    with pytest.raises(StoreUnavailable) as raised, unavailable():
        raise OperationalError("SELECT canary", {"x": "canary"}, error)
    document = raised.value.detail
    assert raised.value.retryable
    assert "canary" not in document
    assert str(tmp_path) not in document


def test_a_failure_of_the_plain_driver_becomes_store_unavailable_too(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable), unavailable():
        raise provoke(tmp_path / "x.db", "SELECT * FROM nothing")


def test_a_message_that_the_driver_cannot_read_is_damage() -> None:
    with pytest.raises(StoreUnavailable, match="damaged"), unavailable():
        b"\x80".decode()


def test_a_violated_constraint_stays_a_bug() -> None:
    plain = sqlite3.IntegrityError("CHECK constraint failed")
    with pytest.raises(IntegrityError), unavailable():
        raise IntegrityError("INSERT", {}, plain)
    with pytest.raises(sqlite3.IntegrityError), unavailable():
        raise plain


def test_only_a_lock_leaves_the_connection_good(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        locked = provoke(path, "BEGIN IMMEDIATE")
    read_only = provoke(path, "PRAGMA query_only=ON", "CREATE TABLE t (x)")
    assert is_busy(OperationalError("", {}, locked))
    assert not is_busy(OperationalError("", {}, read_only))
