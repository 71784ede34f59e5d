"""The audit table is append-only and forgets after 90 days. SPEC §observe."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.core.audit import AuditRow
from app.core.problems import StoreUnavailable
from app.store.audit import KEPT, append, rows
from app.store.migrate import bring_to_head

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def row(at: datetime, *, workspace: str = "w", outcome: str = "ok") -> AuditRow:
    return AuditRow(at, "operator", workspace, "workspace.mcp.attach", "s", outcome)


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a migrated database, trigger and all."""
    bring_to_head(path)
    with closing(sqlite3.connect(path)) as opened:
        yield opened


@pytest.mark.spec("observe")
def test_rows_come_back_whole_and_the_last_written_first_whatever_the_clock_said(
    connection: sqlite3.Connection,
) -> None:
    written = [
        row(NOW),
        row(NOW, outcome="server-exists"),
        AuditRow(NOW + timedelta(microseconds=1), "workspace", "v", "workspace.mcp.list", None, "pending"),
        row(NOW - timedelta(days=1)),
    ]
    for entry in written:
        append(connection, entry, now=NOW)
    assert rows(connection, limit=10, workspace=None) == written[::-1]


@pytest.mark.spec("observe")
def test_rows_can_be_limited_and_asked_of_one_workspace(connection: sqlite3.Connection) -> None:
    for number in range(5):
        append(connection, row(NOW + timedelta(seconds=number), workspace="wv"[number % 2]), now=NOW)
    assert rows(connection, limit=2, workspace="w") == [
        row(NOW + timedelta(seconds=4)),
        row(NOW + timedelta(seconds=2)),
    ]


@pytest.mark.spec("observe")
def test_a_new_row_forgets_those_older_than_90_days_and_no_others(connection: sqlite3.Connection) -> None:
    kept, forgotten = row(NOW - KEPT), row(NOW - KEPT - timedelta(microseconds=1))
    append(connection, forgotten, now=NOW - KEPT)
    append(connection, kept, now=NOW - KEPT)
    append(connection, row(NOW), now=NOW)
    assert timedelta(days=90) == KEPT
    assert rows(connection, limit=10, workspace=None) == [row(NOW), kept]


@pytest.mark.spec("observe")
def test_a_row_cannot_be_changed(connection: sqlite3.Connection) -> None:
    append(connection, row(NOW), now=NOW)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute("UPDATE audit SET outcome = 'ok'")


@pytest.mark.spec("observe")
@pytest.mark.parametrize("actor, at", [("somebody", "2026-11-30T00:00:00.000000Z"), ("operator", "today")])
def test_a_row_of_nobody_or_of_no_time_is_not_let_in(
    connection: sqlite3.Connection, actor: str, at: str
) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(
            "INSERT INTO audit (at, actor, workspace, kind, outcome) VALUES (?, ?, 'w', 'k', 'ok')",
            (at, actor),
        )


@pytest.mark.spec("observe")
def test_forgetting_looks_rows_up_by_their_time(connection: sqlite3.Connection) -> None:
    plan = connection.execute("EXPLAIN QUERY PLAN DELETE FROM audit WHERE at < 'x'").fetchall()
    assert [
        "USING COVERING INDEX audit_at" in str(step) or "USING INDEX audit_at" in str(step) for step in plan
    ] == [True]


@pytest.mark.spec("observe")
@pytest.mark.parametrize(
    "at, kind", [("2026-99-99T99:99:99.999999Z", "k"), ("2026-11-30T12:00:00.000000Z", b"\xff")]
)
def test_a_row_that_is_not_ours_is_told_and_not_left_out(
    connection: sqlite3.Connection, at: str, kind: str | bytes
) -> None:
    append(connection, row(NOW), now=NOW)
    connection.execute(
        "INSERT INTO audit (at, actor, workspace, kind, outcome) VALUES (?, 'operator', 'w', ?, 'ok')",
        (at, kind),
    )
    with pytest.raises(StoreUnavailable):
        rows(connection, limit=9, workspace=None)
