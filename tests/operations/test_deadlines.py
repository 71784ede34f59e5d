"""deadlines.py: each operation is stopped at its own deadline, whichever the timer was set for."""

import asyncio
from typing import Any, cast

import anyio
import pytest

from app.operations.deadlines import Deadlines
from app.operations.open_operation import OpenOperation

pytestmark = pytest.mark.spec("calls")


def due_in(seconds: float, scope: anyio.CancelScope | None) -> OpenOperation:
    deadline = asyncio.get_running_loop().time() + seconds
    nothing = cast("Any", None)
    return OpenOperation(machine=nothing, thread_id=None, deadline=deadline, admit=nothing, scope=scope)


async def test_each_is_stopped_when_it_is_due_and_no_sooner() -> None:
    scopes = [anyio.CancelScope() for _ in range(3)]
    operations = dict(
        zip("wabc", [due_in(0.01, None), *(due_in(0.02, each) for each in scopes[:2])], strict=False)
    )
    operations["c"] = due_in(60, scopes[2])
    deadlines = Deadlines(operations)
    for operation in operations.values():
        deadlines.heed(operation)
    with anyio.fail_after(5):
        while not (scopes[0].cancel_called and scopes[1].cancel_called):
            await anyio.sleep(0.005)
    assert not scopes[2].cancel_called


async def test_one_that_is_begun_after_the_others_ended_is_stopped_too() -> None:
    operations: dict[str, OpenOperation] = {"a": due_in(0.01, None)}
    deadlines = Deadlines(operations)
    deadlines.heed(operations.pop("a"))
    await anyio.sleep(0.03)  # the timer finds nothing, which nothing tells of
    operations["b"] = due_in(0.01, scope := anyio.CancelScope())
    deadlines.heed(operations["b"])
    with anyio.fail_after(5):
        while not scope.cancel_called:
            await anyio.sleep(0.005)


async def test_one_that_was_stopped_holds_no_timer_and_heeds_what_comes() -> None:
    operations: dict[str, OpenOperation] = {"a": due_in(60, None)}
    deadlines = Deadlines(operations)
    deadlines.stop()
    deadlines.heed(operations.pop("a"))
    deadlines.stop()
    assert deadlines._timer is None
    operations["b"] = due_in(0.01, scope := anyio.CancelScope())
    deadlines.heed(operations["b"])
    with anyio.fail_after(5):
        while not scope.cancel_called:
            await anyio.sleep(0.005)
