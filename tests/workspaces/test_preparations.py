"""Running preparations can be cancelled by name, and say so."""

import anyio
import pytest

from app.core.problems import ServerChanged, ShuttingDown
from app.workspaces.preparations import Preparations

pytestmark = pytest.mark.spec("lifecycle")


async def test_a_cancelled_preparation_ends_as_changed_and_is_forgotten() -> None:
    preparations, refused = Preparations(), anyio.Event()

    async def prepare() -> None:
        with pytest.raises(ServerChanged), preparations.running("p"):
            await anyio.sleep_forever()
        refused.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(prepare)
            group.start_soon(prepare)
            await anyio.wait_all_tasks_blocked()
            assert "p" in preparations
            assert len(preparations) == 2
            assert not preparations.cancel("q")
            assert preparations.cancel("p")
    assert refused.is_set()
    assert "p" not in preparations
    assert not preparations.cancel("p")


async def test_the_end_cancels_every_preparation_but_of_what_commits() -> None:
    preparations, refused = Preparations(), list[str]()

    async def prepare(name: str) -> None:
        with pytest.raises(ShuttingDown), preparations.running(name):
            await anyio.sleep_forever()
        refused.append(name)

    with anyio.fail_after(5), preparations.running("r") as committing:
        committing.begin_commit()
        async with anyio.create_task_group() as group:
            group.start_soon(prepare, "p")
            group.start_soon(prepare, "q")
            await anyio.wait_all_tasks_blocked()
            preparations.cancel_all()
    assert sorted(refused) == ["p", "q"]
    assert not preparations


async def test_one_that_was_cancelled_and_awaited_nothing_since_begins_no_commit() -> None:
    preparations = Preparations()
    with preparations.running("p") as preparation, preparations.running("q") as other:
        preparations.cancel("p")
        preparations.cancel_all()
        with pytest.raises(ServerChanged):
            preparation.begin_commit()
        with pytest.raises(ShuttingDown):
            other.begin_commit()


async def test_a_preparation_that_raises_is_forgotten() -> None:
    preparations = Preparations()
    with pytest.raises(ValueError, match="mine"), preparations.running("p"):
        raise ValueError("mine")
    assert "p" not in preparations


async def test_a_caller_that_leaves_is_cancelled_not_told_of_a_change() -> None:
    preparations = Preparations()
    with anyio.move_on_after(0.01) as scope, preparations.running("p"):
        await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert "p" not in preparations
