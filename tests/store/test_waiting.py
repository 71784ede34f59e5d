"""How long the store waits, for its turns and for another process's lock: bounded, and not added up. SPEC §state."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import anyio
import pytest

from app.core.problems import StoreUnavailable
from app.store.engine import Database, Waits
from app.store.failures import LOCKED
from app.store.migrate import bring_to_head
from tests.support.cancelled_at import CancelledAt
from tests.support.databases import held, insert, names, pragma, user_version, workers

SHORT = Waits(timedelta(milliseconds=100), timedelta(milliseconds=100), timedelta(milliseconds=100))


@pytest.fixture
async def impatient(path: Path) -> AsyncGenerator[Database]:
    """Open a database that waits for nobody long."""
    bring_to_head(path)
    opened = Database(path, SHORT)
    yield opened
    await opened.close()


@pytest.mark.spec("state")
async def test_an_outside_writer_delays_a_write_and_no_read(database: Database, path: Path) -> None:
    with held(path) as let_go:
        async with anyio.create_task_group() as group:
            group.start_soon(database.write, partial(insert, name="x"))
            with anyio.fail_after(30):
                assert await database.read(user_version) == 0
            assert names(path) == []
            let_go()
    assert names(path) == ["x", "x"]


@pytest.mark.spec("state")
async def test_an_outside_writer_that_stays_costs_a_retryable_problem_and_nothing_else(
    impatient: Database, path: Path
) -> None:
    with held(path):
        for _ in range(3):
            with pytest.raises(StoreUnavailable) as raised:
                await impatient.write(partial(insert, name="x"))
            assert raised.value.retryable
            assert LOCKED in raised.value.detail
    await impatient.write(partial(insert, name="y"))
    assert names(path) == ["y", "y"]
    assert len(workers()) == 1


@pytest.mark.spec("state")
async def test_a_write_does_not_wait_for_its_turn_for_ever(path: Path) -> None:
    bring_to_head(path)
    database = Database(path, Waits(busy=timedelta(seconds=30), write_turn=timedelta(milliseconds=50)))
    with held(path) as let_go:
        async with anyio.create_task_group() as group:
            group.start_soon(database.write, partial(insert, name="first"))
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(StoreUnavailable, match="takes too long"):
                await database.write(partial(insert, name="second"))
            let_go()
    assert names(path) == ["first", "first"]
    await database.close()


@pytest.mark.spec("state")
async def test_a_write_whose_task_was_cancelled_natively_has_its_turn_until_it_is_over(path: Path) -> None:
    bring_to_head(path)
    database = Database(path, Waits(busy=timedelta(seconds=30), write_turn=timedelta(milliseconds=50)))
    await database.write(partial(insert, name="first"))
    task = asyncio.current_task()
    assert task is not None
    with held(path) as let_go:
        with pytest.raises(asyncio.CancelledError):
            await CancelledAt(database.write(partial(insert, name="left")), 0, task.cancel)
        task.uncancel()
        with pytest.raises(StoreUnavailable, match="takes too long"):
            await database.write(partial(insert, name="second"))
        let_go()
    await database.close()
    assert names(path) == ["first", "first", "left", "left"]


@pytest.mark.spec("state")
@pytest.mark.parametrize("way, work", [("write", partial(insert, name="x")), ("read", user_version)])
async def test_those_who_meet_a_lock_wait_for_it_once_and_not_one_after_the_other(
    path: Path, way: str, work: Callable[[sqlite3.Connection], object]
) -> None:
    bring_to_head(path)
    database = Database(path, Waits(busy=timedelta(seconds=0.5)))

    async def refused() -> None:
        with pytest.raises(StoreUnavailable, match=LOCKED):
            await getattr(database, way)(work)

    with held(path, is_exclusive=way == "read"):
        began = anyio.current_time()
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(refused)
        # Nor do those who come later.
        for _ in range(4):
            await refused()
        assert anyio.current_time() - began < 2.5
    await getattr(database, way)(work)
    await database.close()


@pytest.mark.spec("state")
async def test_a_lock_is_waited_for_again_once_a_write_has_succeeded(path: Path) -> None:
    bring_to_head(path)
    database = Database(path, Waits(busy=timedelta(seconds=0.2)))
    told: list[object] = []
    for name in ("x", "y"):
        with held(path), pytest.raises(StoreUnavailable):
            await database.write(partial(insert, name="refused"))
        await database.write(partial(insert, name=name))
        told.append(await database.write(partial(pragma, name="busy_timeout")))
    assert (names(path), told) == (["x", "x", "y", "y"], [200, 200])
    await database.close()
