"""Cancel scopes and latches: what of anyio is made in every call or kept by every attachment."""

import asyncio
import sys

import anyio
import pytest
from anyio.lowlevel import checkpoint

from app.concurrency import Bracket, Latch, Stop, cancel_scope


async def test_a_scope_is_one_of_anyio() -> None:
    assert type(cancel_scope()) is type(anyio.CancelScope())


async def test_a_scope_ends_its_block_and_nothing_else() -> None:
    with cancel_scope() as outer:
        with cancel_scope() as inner:
            inner.cancel()
            await anyio.sleep_forever()
        assert inner.cancelled_caught
        with anyio.CancelScope(shield=True):
            outer.cancel()
            await checkpoint()
        await anyio.sleep_forever()
    assert outer.cancelled_caught


def test_scopes_of_two_event_loops() -> None:
    async def kept() -> bool:
        with cancel_scope() as scope:
            scope.cancel()
            await anyio.sleep_forever()
        return scope.cancelled_caught

    assert anyio.run(kept)
    assert anyio.run(kept)


@pytest.mark.parametrize("waiters", [1, 3])
async def test_a_latch_lets_everybody_go_on_who_waits(waiters: int) -> None:
    latch, gone_on = Latch(), list[int]()

    async def wait(number: int) -> None:
        await latch.wait()
        gone_on.append(number)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            for number in range(waiters):
                group.start_soon(wait, number)
            await anyio.wait_all_tasks_blocked()
            assert not gone_on
            latch.set()
    assert sorted(gone_on) == list(range(waiters))


async def test_nobody_waits_for_a_latch_that_is_set_but_others_have_a_turn() -> None:
    latch, had_a_turn = Latch(), False

    async def other() -> None:
        nonlocal had_a_turn
        had_a_turn = True

    latch.set()
    latch.set()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(other)
            await latch.wait()
            assert had_a_turn


async def test_who_gives_up_waiting_leaves_the_latch_to_others() -> None:
    latch = Latch()
    with anyio.move_on_after(0.01):
        await latch.wait()
    latch.set()
    with anyio.fail_after(10):
        await latch.wait()


def test_a_latch_nobody_waits_for_is_small() -> None:
    assert sys.getsizeof(Latch()) <= 64


async def stopped(stop: Stop, within: anyio.CancelScope) -> list[str]:
    """Wait in the block for ever; return what came after what."""
    seen: list[str] = []
    try:
        with within:
            with stop:
                await anyio.sleep_forever()
            seen.append("after the block")
            await checkpoint()
            seen.append("went on")
    finally:
        seen.append("scope left")
    return seen


async def run_stopped(*calls: str) -> tuple[list[str], anyio.CancelScope]:
    stop, within, seen = Stop(asyncio.get_running_loop()), anyio.CancelScope(), list[str]()

    async def run() -> None:
        seen.extend(await stopped(stop, within))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            for each in calls:
                stop.cancel() if each == "stop" else within.cancel()
    return seen, within


@pytest.mark.parametrize("calls", [["stop"], ["stop", "stop"]])
async def test_a_stop_ends_its_block_alone(calls: list[str]) -> None:
    seen, within = await run_stopped(*calls)
    assert seen == ["after the block", "went on", "scope left"]
    assert not within.cancelled_caught


@pytest.mark.parametrize("calls", [["scope"], ["scope", "stop"], ["stop", "scope"]])
async def test_who_cancels_more_than_the_block_is_not_stopped_by_it(calls: list[str]) -> None:
    seen, within = await run_stopped(*calls)
    assert "went on" not in seen
    assert within.cancelled_caught


async def test_who_stops_an_outer_block_too_is_not_stopped_by_the_inner_one() -> None:
    loop, seen = asyncio.get_running_loop(), list[str]()
    outer, inner = Stop(loop), Stop(loop)

    async def run() -> None:
        with outer:
            with inner:
                await anyio.sleep_forever()
            seen.append("behind the inner block")
        seen.append("behind the outer block")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            inner.cancel()
            outer.cancel()
    assert seen == ["behind the outer block"]


async def test_a_stop_that_came_before_its_block_ends_it_at_its_first_wait() -> None:
    stop, seen = Stop(asyncio.get_running_loop()), list[str]()
    stop.cancel()
    with anyio.fail_after(10), stop:
        seen.append("begun")
        await anyio.sleep_forever()
    await checkpoint()
    assert seen == ["begun"]


async def test_a_stop_that_comes_after_its_block_does_nothing() -> None:
    stop = Stop(asyncio.get_running_loop())
    with stop:
        await checkpoint()
    stop.cancel()
    await checkpoint()


async def test_an_error_of_the_block_is_raised_though_it_was_stopped() -> None:
    async def fail(stop: Stop) -> None:
        with stop:
            stop.cancel()
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        await fail(Stop(asyncio.get_running_loop()))
    await checkpoint()


def test_a_bracket_calls_before_and_after_its_block_however_that_ends() -> None:
    seen: list[str] = []

    def block(*, fails: bool) -> None:
        with Bracket(lambda: seen.append("begin"), lambda: seen.append("end")):
            seen.append("block")
            if fails:
                raise ValueError("its own")

    block(fails=False)
    with pytest.raises(ValueError, match="its own"):
        block(fails=True)
    assert seen == ["begin", "block", "end"] * 2


def test_a_bracket_whose_begin_raises_has_no_end() -> None:
    seen: list[str] = []

    def refuse() -> None:
        raise ValueError("full")

    def block() -> None:
        with Bracket(refuse, lambda: seen.append("end")):
            seen.append("block")

    with pytest.raises(ValueError, match="full"):
        block()
    assert not seen
