"""The store as a whole: what was acknowledged is there after a restart or a kill. SPEC §state, §observe."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from app.core.attachments import Attached, Detached
from app.core.audit import AuditRow
from app.core.problems import StoreUnavailable
from app.ports import Store
from app.store import SqlStore, StoreRefused, open_store
from app.store.engine import Waits
from app.store.sql_store import utc_now
from tests.support.databases import contents, query

NOW = datetime(2026, 11, 30, tzinfo=UTC)

APPLY_FOR_EVER = """
import anyio, sys
from pathlib import Path
from app.core.attachments import Attached, Detached
from app.store import open_store

async def main():
    async with open_store(Path(sys.argv[1])) as store:
        for number in range(1_000_000):
            record = Attached(f'{{"n": {number}}}') if number % 3 else Detached()
            await store.apply("w", f"s{number % 7}", record)
            print(number, flush=True)

anyio.run(main)
"""

LEAVE = """
import anyio, asyncio, os, signal, sys
from pathlib import Path
from app.core.attachments import Detached
from app.store import open_store

async def main(way):
    async with open_store(Path(sys.argv[1])) as store:
        await store.apply("w", "s", Detached())
        await store.load("w")
        if way == "raise":
            raise RuntimeError
        if way == "exit":
            sys.exit(3)
        if way == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
            await anyio.sleep_forever()

async def lost():
    # Nobody closes it: the generator is dropped with the loop.
    opened = open_store(Path(sys.argv[1]))
    store = await opened.__aenter__()
    await store.apply("w", "s", Detached())
    os.write(1, b"left")

asyncio.run(lost() if sys.argv[2] == "lost" else main(sys.argv[2]))
"""


def killed_after(path: Path, acknowledged: int) -> int:
    """Kill a process that applies without end; return the last number that it acknowledged."""
    command = [sys.executable, "-c", APPLY_FOR_EVER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path.cwd()) as process:
        assert process.stdout is not None
        for _ in range(acknowledged):
            assert process.stdout.readline()
        process.kill()
        last = acknowledged - 1
        for line in process.stdout:
            last = int(line)
    assert process.returncode == -signal.SIGKILL
    return last


def record_of(number: int) -> Attached | Detached:
    """Return what APPLY_FOR_EVER wrote under this number."""
    return Attached(f'{{"n": {number}}}') if number % 3 else Detached()


@pytest.mark.spec("state")
async def test_what_was_applied_is_there_after_a_restart(path: Path) -> None:
    async with open_store(path) as first:
        port: Store = first
        await port.apply("w1", "p", Attached('{"token":  "${T}"}'))
        await port.apply("w1", "q", Detached())
        await port.apply("w2", "p", Attached("{}"))
        await port.apply("w2", "p", None)
    async with open_store(
        f"sqlite+aiosqlite:///{str(path).replace('%', '%25').replace('?', '%3F')}"
    ) as second:
        assert dict(await second.load("w1")) == {"p": Attached('{"token":  "${T}"}'), "q": Detached()}
        assert dict(await second.load("w2")) == {}
        assert await second.workspaces() == ["w1"]


@pytest.mark.spec("state")
async def test_a_clean_end_leaves_one_file(path: Path) -> None:
    async with open_store(path) as store:
        await store.apply("w", "s", Detached())
    assert list(contents(path)) == ["plurnk.db"]


@pytest.mark.spec("state")
async def test_a_change_is_one_short_transaction(store: SqlStore) -> None:
    seen: list[str] = []

    def statement(sql: str) -> None:
        seen.append(sql.split(maxsplit=1)[0])

    for way in (store._database.write, store._database.read):
        await way(lambda connection: connection.set_trace_callback(statement))
    assert seen == ["COMMIT"]
    seen.clear()
    await store.apply("w", "s", Attached("{}"))
    assert seen == ["BEGIN", "INSERT", "COMMIT"]
    seen.clear()
    await store.apply("w", "s", None)
    assert seen == ["BEGIN", "DELETE", "COMMIT"]
    seen.clear()
    await store.record(AuditRow(NOW, "operator", "w", "workspace.mcp.attach", "s", "ok"))
    assert seen == ["BEGIN", "INSERT", "DELETE", "COMMIT"]
    seen.clear()
    await store.apply("w", "s", None, AuditRow(NOW, "operator", "w", "workspace.mcp.detach", "s", "ok"))
    assert seen == ["BEGIN", "DELETE", "INSERT", "DELETE", "COMMIT"]
    seen.clear()
    await store.load("w")
    assert seen == ["SELECT"]


@pytest.mark.spec("state", "observe")
async def test_a_change_and_its_audit_row_are_written_together_or_not_at_all(store: SqlStore) -> None:
    row = AuditRow(NOW, "operator", "w", "workspace.mcp.attach", "s", "ok")
    with pytest.raises(sqlite3.IntegrityError):
        await store.apply("w", "t", Detached(), replace(row, actor="nobody"))
    await store.apply("w", "s", Detached(), row)
    assert dict(await store.load("w")) == {"s": Detached()}
    assert await store.audit_rows() == [row]


@pytest.mark.spec("observe")
async def test_the_audit_table_tells_who_did_what_and_how_it_ended(store: SqlStore) -> None:
    rows = [
        AuditRow(NOW - timedelta(days=91), "operator", "w", "workspace.mcp.attach", "s", "ok"),
        AuditRow(NOW, "workspace", "w", "workspace.mcp.detach", "s", "server-busy"),
        AuditRow(NOW, "operator", "v", "workspace.mcp.list", None, "ok"),
    ]
    for row in rows:
        await store.record(row)
    assert await store.audit_rows() == [rows[2], rows[1]]
    assert await store.audit_rows(limit=1) == [rows[2]]
    assert await store.audit_rows(workspace="w") == [rows[1]]


@pytest.mark.spec("state")
async def test_fifty_clients_attach_and_detach_in_ten_workspaces_without_a_lock(store: SqlStore) -> None:
    async def attach_and_detach(number: int) -> None:
        workspace = f"w{number % 10}"
        await store.apply(workspace, f"s{number}", Attached("{}"))
        assert (await store.load(workspace))[f"s{number}"] == Attached("{}")
        await store.record(
            AuditRow(utc_now(), "operator", workspace, "workspace.mcp.attach", f"s{number}", "ok")
        )
        await store.apply(workspace, f"s{number}", None if number % 2 else Detached())

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(attach_and_detach, number)
    left = {workspace: sorted(await store.load(workspace)) for workspace in await store.workspaces()}
    assert left == {f"w{n}": sorted(f"s{m}" for m in range(n, 50, 10)) for n in range(0, 10, 2)}


@pytest.mark.spec("state")
async def test_the_clock_dates_a_row_when_the_change_was_asked_for(path: Path) -> None:
    async with open_store(path, clock=lambda: NOW) as store:
        await store.apply("w", "s", Detached())
    assert query(path, "SELECT updated_at FROM server_attachments") == [("2026-11-30T00:00:00.000000Z",)]
    assert utc_now().tzinfo is UTC


@pytest.mark.spec("state")
@pytest.mark.parametrize("acknowledged", [1, 20, 100])
async def test_what_was_acknowledged_before_a_kill_is_there_and_nothing_half(
    path: Path, acknowledged: int
) -> None:
    last = killed_after(path, acknowledged)
    async with open_store(path) as store:
        entries = await store.load("w")
        # The write after the last acknowledged one may have been finished, never a part of it.
        candidates = [
            {f"s{n % 7}": record_of(n) for n in range(max(0, end - 6), end + 1)} for end in (last, last + 1)
        ]
        assert dict(entries) in candidates
    assert query(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.spec("shutdown")
@pytest.mark.parametrize(
    "way, status", [("end", 0), ("raise", 1), ("exit", 3), ("interrupt", -signal.SIGINT), ("lost", 0)]
)
def test_a_process_ends_by_itself_however_it_leaves_the_store(path: Path, way: str, status: int) -> None:
    process = subprocess.run(
        [sys.executable, "-c", LEAVE, str(path), way], capture_output=True, timeout=30, check=False
    )
    assert process.returncode == status
    assert query(path, "SELECT name FROM server_attachments") == [("s",)]


def connection_threads() -> set[threading.Thread]:
    """Return the threads of open connections; other tests' idle workers come and go."""
    return {thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name}


@pytest.mark.spec("shutdown")
async def test_a_failure_inside_closes_the_store(path: Path) -> None:
    before = connection_threads()
    opened: list[SqlStore] = []

    async def fail() -> None:
        async with open_store(path) as store:
            opened.append(store)
            await store.apply("w", "s", Detached())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    with pytest.raises(StoreUnavailable, match="closed"):
        await opened[0].load("w")
    with anyio.fail_after(10):
        while connection_threads() - before:  # a closed connection's thread ends on its own
            await anyio.lowlevel.checkpoint()


@pytest.mark.spec("state")
async def test_a_refused_database_opens_nothing(tmp_path: Path) -> None:
    path = anyio.Path(tmp_path / "plurnk.db")
    content = os.urandom(16 * 1024)
    await path.write_bytes(content)
    with pytest.raises(StoreRefused):
        async with open_store(Path(path)):
            pytest.fail("it opened")
    assert contents(Path(path)) == {"plurnk.db": content}


@pytest.mark.spec("observe")
@pytest.mark.parametrize("jump", [timedelta(days=400), timedelta(days=-30)])
async def test_a_clock_that_is_set_forward_costs_no_audit_row_and_set_back_it_hides_none(
    path: Path, jump: timedelta
) -> None:
    def said(workspace: str, at: datetime) -> AuditRow:
        return AuditRow(at, "operator", workspace, "workspace.mcp.detach", "s", "ok")

    async with open_store(path, clock=lambda: NOW) as store:
        for workspace, at in {"before": NOW, "while it was wrong": NOW + jump, "after": NOW}.items():
            await store.record(said(workspace, at))
        shown = [row.workspace for row in await store.audit_rows(limit=2)]
        assert shown == ["after", "while it was wrong"]
        assert len(await store.audit_rows()) == 3
    # What is old by the time of the next start is forgotten with the next row.
    async with open_store(path, clock=lambda: NOW + timedelta(days=91)) as store:
        await store.record(said("later", NOW + timedelta(days=91)))
        left = {"while it was wrong", "later"} if jump > timedelta() else {"later"}
        assert {row.workspace for row in await store.audit_rows()} == left


@pytest.mark.spec("state")
async def test_a_row_that_cannot_be_read_fails_its_own_workspace_only(path: Path) -> None:
    waits = Waits()
    async with open_store(path, waits=waits) as store:
        await store.apply("good", "s", Attached("{}"))
    query(
        path,
        "INSERT INTO server_attachments"
        " VALUES ('bad', 's', 'attached', CAST(x'ff' AS TEXT), '2026-11-30T00:00:00.000000Z')",
    )
    async with open_store(path, waits=waits) as store:
        with pytest.raises(StoreUnavailable):
            await store.load("bad")
        assert dict(await store.load("good")) == {"s": Attached("{}")}
        assert await store.workspaces() == ["bad", "good"]
        await store.apply("bad", "s", None)
        assert dict(await store.load("bad")) == {}
