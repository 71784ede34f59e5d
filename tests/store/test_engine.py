"""The two connections: settings, turns, failures, and cancellation at every await. SPEC §state."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from app.core.problems import StoreUnavailable
from app.store.engine import Database
from app.store.migrate import bring_to_head
from tests.support.cancelled_at import CancelledAt
from tests.support.databases import contents, held, insert, names, pragma, user_version, workers
from tests.support.eventually import eventually


def overwrite(path: Path) -> None:
    """Damage all of the file but its header."""
    sound = path.read_bytes()
    path.write_bytes(sound[:100] + b"\xff" * (len(sound) - 100))


def move_away(path: Path, *, replaced: bool) -> None:
    """Rename the file, with a copy in its place or with nothing."""
    backup = path.rename(path.with_name("backup.db"))
    if replaced:
        path.write_bytes(backup.read_bytes())


async def at_most(count: int) -> None:
    """Return once no more threads than that are left; those of connections thrown away end on their own."""
    with anyio.fail_after(10):
        while len(workers()) > count:
            await anyio.lowlevel.checkpoint()


@pytest.mark.spec("state")
async def test_both_connections_are_durable_strict_and_patient_and_one_cannot_write(
    database: Database,
) -> None:
    def settings(connection: sqlite3.Connection) -> dict[str, object]:
        asked = (
            "journal_mode",
            "synchronous",
            "foreign_keys",
            "busy_timeout",
            "trusted_schema",
            "query_only",
        )
        return {name: pragma(connection, name) for name in asked}

    common = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 5000,
        "trusted_schema": 0,
    }
    assert await database.write(settings) == {**common, "query_only": 0}
    assert await database.read(settings) == {**common, "query_only": 1}
    with pytest.raises(StoreUnavailable, match="read-only"):
        await database.read(partial(insert, name="x"))


@pytest.mark.spec("state")
async def test_a_write_takes_the_lock_before_it_reads(database: Database, path: Path) -> None:
    def others_may_write(_connection: sqlite3.Connection) -> bool:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            return True

    assert await database.write(others_may_write) is False
    assert await database.read(others_may_write) is True


@pytest.mark.spec("state")
async def test_a_failed_write_leaves_nothing_and_the_next_one_works(database: Database, path: Path) -> None:
    def half_way(connection: sqlite3.Connection) -> None:
        insert(connection, "x")
        insert(connection, "x")

    def buggy(connection: sqlite3.Connection) -> None:
        insert(connection, "x")
        raise ZeroDivisionError

    with pytest.raises(sqlite3.IntegrityError):
        await database.write(half_way)
    with pytest.raises(ZeroDivisionError):
        await database.write(buggy)
    assert names(path) == []
    await database.write(partial(insert, name="y"))
    assert names(path) == ["y", "y"]


@pytest.mark.spec("state")
async def test_a_full_disk_costs_the_write_alone(database: Database, path: Path) -> None:
    def too_much(connection: sqlite3.Connection) -> None:
        insert(connection, "x")
        connection.execute(f"PRAGMA max_page_count={pragma(connection, 'page_count')}")
        connection.execute("CREATE TABLE big AS SELECT zeroblob(1000000)")

    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await database.write(too_much)
    assert names(path) == []
    await database.write(partial(insert, name="y"))
    assert names(path) == ["y", "y"]


@pytest.mark.spec("state")
async def test_a_commit_that_fails_leaves_nothing(database: Database, path: Path) -> None:
    def refused_at_commit(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE child (id REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")
        insert(connection, "x")
        connection.execute("INSERT INTO child VALUES (1)")

    with pytest.raises(sqlite3.IntegrityError):
        await database.write(refused_at_commit)
    assert names(path) == []
    await database.write(partial(insert, name="y"))
    assert names(path) == ["y", "y"]


@pytest.mark.spec("state")
async def test_a_connection_that_became_read_only_is_replaced(database: Database, path: Path) -> None:
    await database.write(lambda connection: connection.execute("PRAGMA query_only=ON"))
    with pytest.raises(StoreUnavailable, match="read-only"):
        await database.write(partial(insert, name="x"))
    await database.write(partial(insert, name="y"))
    assert names(path) == ["y", "y"]


@pytest.mark.spec("state")
async def test_a_damaged_file_is_told_as_such(path: Path) -> None:
    bring_to_head(path)
    overwrite(path)
    database = Database(path)
    with pytest.raises(StoreUnavailable, match="damaged"):
        await database.write(partial(insert, name="x"))
    with pytest.raises(StoreUnavailable, match="damaged"):
        await database.read(lambda connection: connection.execute("SELECT * FROM audit").fetchall())
    await database.close()


@pytest.mark.spec("state")
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_write_does_not_go_into_a_file_that_was_moved_away(
    database: Database, path: Path, replaced: bool
) -> None:
    await database.write(partial(insert, name="x"))
    move_away(path, replaced=replaced)
    with pytest.raises(StoreUnavailable, match="moved or replaced"):
        await database.write(partial(insert, name="y"))


async def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    database = Database(tmp_path / "missing.db")
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await database.read(user_version)
    await database.close()
    await at_most(0)
    assert contents(tmp_path / "missing.db") == {}


@pytest.mark.spec("state")
async def test_a_closed_database_refuses_and_leaves_no_thread(path: Path) -> None:
    bring_to_head(path)
    before = workers()
    database = Database(path)
    await database.write(partial(insert, name="x"))
    await database.read(user_version)
    assert len(workers() - before) == 2
    await database.close()
    await database.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await database.write(partial(insert, name="y"))
    with pytest.raises(StoreUnavailable, match="closed"):
        await database.read(user_version)
    # A thread that has done its work may still be on its way out.
    await eventually(lambda: not workers() - before)
    assert names(path) == ["x", "x"]


@pytest.mark.spec("shutdown")
async def test_closing_waits_for_a_write_under_way_and_refuses_those_behind_it(path: Path) -> None:
    bring_to_head(path)
    database = Database(path)
    refused: list[bool] = []

    async def late() -> None:
        with pytest.raises(StoreUnavailable, match="closed"):
            await database.write(partial(insert, name="late"))
        refused.append(True)

    with held(path) as let_go:
        async with anyio.create_task_group() as group:
            group.start_soon(database.write, partial(insert, name="first"))
            await anyio.wait_all_tasks_blocked()
            group.start_soon(late)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(database.close)
            await anyio.wait_all_tasks_blocked()
            let_go()
    assert names(path) == ["first", "first"]
    assert refused == [True]


@pytest.mark.spec("state")
async def test_many_writers_at_once_never_meet_a_lock(database: Database, path: Path) -> None:
    async with anyio.create_task_group() as group:
        for number in range(100):
            group.start_soon(database.write, partial(insert, name=f"s{number}"))
            group.start_soon(database.read, user_version)
    assert len(names(path)) == 200


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[Database]:
    """Open the file anew, which the first use of each connection does."""
    await anyio.to_thread.run_sync(bring_to_head, path)
    database = Database(path)
    yield database
    await database.close()


async def whole_or_nothing(database: Database, path: Path, name: str) -> int:
    """Return how many of the two rows are there, once a following write shows that the store goes on."""
    with anyio.fail_after(30):
        await database.write(partial(insert, name=f"{name}-next"))
        await database.read(user_version)
    seen = names(path)
    assert seen.count(f"{name}-next") == 2
    return seen.count(name)


@pytest.mark.spec("state")
async def test_a_caller_cancelled_at_any_await_of_a_write_finds_all_or_nothing(path: Path) -> None:
    outcomes: list[int] = []
    for step in range(1000):
        scope = anyio.CancelScope()
        async with opened(path) as database:  # Opening is most of the awaits.
            write = CancelledAt(database.write(partial(insert, name=f"s{step}")), step, scope.cancel)
            with scope:
                await write
            if not write.was_reached:
                break
            outcomes.append(await whole_or_nothing(database, path, f"s{step}"))
            assert len(workers()) == 2
    assert set(outcomes) == {2}
    assert len(outcomes) > 5


@pytest.mark.spec("state")
async def test_a_caller_cancelled_while_it_waits_for_its_turn_has_written_nothing(
    database: Database, path: Path
) -> None:
    with held(path) as let_go:
        async with anyio.create_task_group() as group:
            group.start_soon(database.write, partial(insert, name="first"))
            await anyio.wait_all_tasks_blocked()
            async with anyio.create_task_group() as impatient:
                impatient.start_soon(database.write, partial(insert, name="second"))
                await anyio.wait_all_tasks_blocked()
                impatient.cancel_scope.cancel()
            group.start_soon(database.write, partial(insert, name="third"))
            let_go()
    assert names(path) == ["first", "first", "third", "third"]


@pytest.mark.spec("state")
async def test_a_task_cancelled_natively_at_any_await_of_a_write_finds_all_or_nothing(path: Path) -> None:
    task = asyncio.current_task()
    assert task is not None
    outcomes: list[int] = []
    for step in range(1000):
        async with opened(path) as database:
            write = CancelledAt(database.write(partial(insert, name=f"s{step}")), step, task.cancel)
            try:
                await write
            except asyncio.CancelledError:
                task.uncancel()
            if not write.was_reached:
                break
            outcomes.append(await whole_or_nothing(database, path, f"s{step}"))
    assert set(outcomes) == {0, 2}
    await at_most(0)


@pytest.mark.spec("state")
async def test_a_task_cancelled_natively_at_any_await_of_a_read_leaves_the_store_working(path: Path) -> None:
    task = asyncio.current_task()
    assert task is not None
    for step in range(1000):
        async with opened(path) as database:
            read = CancelledAt(database.read(user_version), step, task.cancel)
            try:
                await read
            except asyncio.CancelledError:
                task.uncancel()
            if not read.was_reached:
                return
            await whole_or_nothing(database, path, f"s{step}")
