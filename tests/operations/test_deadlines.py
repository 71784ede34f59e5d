"""deadlines.py: each operation is stopped at its own deadline, whichever the timer was set for."""

import asyncio
import time
from typing import Any, cast

import anyio
import pytest
from anyio.abc import TaskGroup

from app.concurrency import Stop
from app.operations.deadlines import Deadlines
from app.operations.open_operation import OpenOperation

pytestmark = pytest.mark.spec("calls")


def due_in(seconds: float) -> OpenOperation:
    nothing = cast("Any", None)
    deadline = time.monotonic() + seconds
    return OpenOperation(id="op-1", machine=nothing, thread_id=None, deadline=deadline, admit=nothing)


async def driven(operation: OpenOperation, group: TaskGroup) -> anyio.Event:
    """Have a task drive the operation for ever; return the event of its being stopped."""
    stopped = anyio.Event()

    async def drive(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        operation.driven = Stop(asyncio.get_running_loop())
        with operation.driven:
            task_status.started()
            await anyio.sleep_forever()
        stopped.set()

    await group.start(drive)
    return stopped


async def test_each_is_stopped_when_it_is_due_and_no_sooner() -> None:
    operations = dict(zip("wabc", map(due_in, (0.01, 0.02, 0.02, 60)), strict=True))
    deadlines = Deadlines(operations)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            a, b, c = [await driven(operations[each], group) for each in "abc"]
            for operation in operations.values():
                deadlines.heed(operation)
            await a.wait()
            await b.wait()
            assert not c.is_set()
            group.cancel_scope.cancel()
    deadlines.stop()


async def test_one_that_is_begun_after_the_others_ended_is_stopped_too() -> None:
    operations = {"a": due_in(0.01)}
    deadlines = Deadlines(operations)
    deadlines.heed(operations.pop("a"))
    await anyio.sleep(0.03)  # the timer finds nothing, which nothing tells of
    operations["b"] = due_in(0.01)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            stopped = await driven(operations["b"], group)
            deadlines.heed(operations["b"])
            await stopped.wait()


async def test_one_that_was_stopped_holds_no_timer_and_heeds_what_comes() -> None:
    operations = {"a": due_in(60)}
    deadlines = Deadlines(operations)
    deadlines.stop()
    deadlines.heed(operations.pop("a"))
    deadlines.stop()
    assert deadlines._timer is None
    operations["b"] = due_in(0.01)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            stopped = await driven(operations["b"], group)
            deadlines.heed(operations["b"])
            await stopped.wait()
