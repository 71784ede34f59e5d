"""How long and how many ends of operations are kept."""

import anyio
import pytest

from app.core.operation import Completed
from app.operations import settled as module
from app.operations.settled import KEPT_BYTES_MAX, KEPT_MAX, SettledOperation, SettledOperations


def ended(number: int, *, size: int = 0) -> SettledOperation:
    return SettledOperation(
        id=f"op-{number}",
        kind="workspace.mcp.call",
        ending=Completed({"status": 200}, size),
        answers={f"int-a{number}": "x"},
        unanswered=frozenset({f"int-u{number}"}),
        is_expired=False,
        is_cancelled=False,
        tool_call_id=None,
        size=size,
    )


@pytest.mark.spec("calls")
async def test_an_end_is_found_by_its_operation_and_by_its_interrupts() -> None:
    kept = SettledOperations()
    kept.keep(ended(1))
    assert kept.find("op-1") == kept.of_interrupt("int-a1") == kept.of_interrupt("int-u1") == ended(1)
    assert (kept.find("op-2"), kept.of_interrupt("int-a2")) == (None, None)
    kept.clear()
    assert (len(kept), kept.find("op-1"), kept.of_interrupt("int-a1"), kept._timer) == (0, None, None, None)


@pytest.mark.spec("calls")
async def test_a_thousand_ends_are_kept_and_the_oldest_goes_first() -> None:
    kept = SettledOperations()
    for number in range(KEPT_MAX + 1):
        kept.keep(ended(number))
    assert (module.KEPT_S, KEPT_MAX, len(kept)) == (600.0, 1000, 1000)
    assert (kept.find("op-0"), kept.of_interrupt("int-a0"), kept.of_interrupt("int-u0")) == (None, None, None)
    assert kept.find("op-1") == ended(1)
    assert len(kept._by_interrupt) == 2 * KEPT_MAX
    kept.clear()


@pytest.mark.spec("limits")
async def test_large_results_are_kept_up_to_a_sum_and_the_last_one_always() -> None:
    kept = SettledOperations()
    half = KEPT_BYTES_MAX // 2
    for number in range(3):
        kept.keep(ended(number, size=half))
    assert [kept.find(f"op-{number}") is not None for number in range(3)] == [False, True, True]
    kept.keep(ended(3, size=KEPT_BYTES_MAX + 1))
    assert (len(kept), kept.find("op-3") is not None) == (1, True)
    kept.clear()
    assert kept._bytes == 0


@pytest.mark.spec("calls")
async def test_what_is_not_due_stays_and_the_timer_is_set_for_it() -> None:
    kept = SettledOperations()
    kept.keep(ended(1))
    first = kept._timer
    kept._forget_due()
    assert len(kept) == 1
    assert kept._timer not in (None, first)
    assert first is not None
    first.cancel()
    kept.clear()


@pytest.mark.spec("calls")
async def test_one_timer_forgets_each_end_at_its_time() -> None:
    kept = SettledOperations(kept_s=0.05)
    kept.keep(ended(1))
    first = kept._timer
    kept.keep(ended(2))
    assert kept._timer is first
    with anyio.fail_after(5):
        while len(kept):
            await anyio.sleep(0.01)
    assert (kept._timer, kept._by_interrupt, kept._bytes) == (None, {}, 0)
    kept.keep(ended(3))
    assert kept._timer is not None
    kept.clear()
