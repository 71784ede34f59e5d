"""The gate of a server: a commit refuses while an operation is counted, and holds newcomers back."""

import anyio
import pytest

from app.core.problems import ServerBusy
from app.workspaces.quiescence import Gate

pytestmark = pytest.mark.spec("lifecycle")


async def test_a_commit_is_refused_while_an_operation_is_counted() -> None:
    gate = Gate("p")
    assert not gate.is_held
    await gate.enter("op-1")
    await gate.enter("op-2")
    assert gate.is_held
    with pytest.raises(ServerBusy) as refused:
        async with gate.quiet():
            pytest.fail("the gate was not quiet")
    assert refused.value.facts == {"server": "p", "operations": ["op-1", "op-2"]}
    gate.leave("op-1")
    gate.leave("op-2")
    gate.leave("op-2")
    assert not gate.is_held
    async with gate.quiet():
        assert (gate.operations, gate.is_held) == ((), True)


async def test_an_operation_that_comes_during_a_commit_waits_for_its_end() -> None:
    gate, entered = Gate("p"), anyio.Event()

    async def newcomer() -> None:
        await gate.enter("op-1")
        entered.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            async with gate.quiet():
                group.start_soon(newcomer)
                await anyio.wait_all_tasks_blocked()
                assert not entered.is_set()
            await entered.wait()
    assert gate.operations == ("op-1",)


async def test_a_refused_commit_leaves_the_gate_open() -> None:
    gate = Gate("p")
    await gate.enter("op-1")
    with pytest.raises(ServerBusy):
        async with gate.quiet():
            pass
    with anyio.fail_after(5):
        await gate.enter("op-2")


async def test_a_cancelled_newcomer_is_not_counted() -> None:
    gate = Gate("p")
    async with anyio.create_task_group() as group, gate.quiet():
        group.start_soon(gate.enter, "op-1")
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await anyio.wait_all_tasks_blocked()
    assert gate.operations == ()


async def test_a_gate_that_is_waited_for_is_held_between_two_of_them_too() -> None:
    gate, order = Gate("p"), list[bool]()

    async def commit() -> None:
        async with gate.quiet():
            order.append(gate.is_held)

    async with anyio.create_task_group() as group:
        async with gate.quiet():
            group.start_soon(commit)
            await anyio.wait_all_tasks_blocked()
        assert order == []
        order.append(gate.is_held)
    assert (order, gate.is_held) == ([True, True], False)
