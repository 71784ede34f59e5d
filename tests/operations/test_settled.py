"""How long and how many ends of operations are kept."""

import anyio
import pytest

from app.core.operation_problems import ToolCallFailed
from app.core.problem import Problem
from app.core.problems import Internal
from app.core.steps import Completed, Ending, Failed
from app.operations import settled as module
from app.operations.settled import (
    END_BYTES,
    KEPT_BYTES_MAX,
    KEPT_MAX,
    SHELF_BYTES_MAX,
    SettledOperations,
    Shelf,
    kept_end,
)
from tests.support.board_house import ended

BASE = 3 * END_BYTES
"""What ``ended`` counts beside its result: it has two interrupts."""


def sized(number: int, size: int) -> module.SettledOperation:
    """Return an operation whose end counts for so many bytes."""
    return ended(number, bytes(size - BASE))


def kept_of(settled: SettledOperations, count: int) -> list[int]:
    """Return which of the first operations are kept."""
    return [number for number in range(count) if settled.find(f"op-{number}")]


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    "ending",
    [
        Completed.of({"status": 200, "content": [{"type": "text", "text": "grüße"}], "x": [1.5, -1, None]}),
        Failed(ToolCallFailed("p", "it died")),
    ],
    ids=["result", "problem"],
)
def test_an_end_comes_back_as_it_was(ending: Ending) -> None:
    again = ended(1, kept_end(ending)).ending
    if isinstance(ending, Completed):
        assert again == ending
    else:
        assert isinstance(again, Failed)
        assert again.problem.document() == ending.problem.document()
        assert again.problem is not ending.problem


@pytest.mark.spec("limits")
@pytest.mark.parametrize(
    ("end", "size"),
    [(bytes(70_000), 70_000), (Internal("t"), len(str(Internal("t"))))],
    ids=["result", "problem"],
)
def test_an_end_counts_for_what_it_needs_and_for_its_interrupts(end: bytes | Problem, size: int) -> None:
    assert size + BASE <= ended(1, end).size <= size + BASE + 1024


@pytest.mark.spec("calls")
async def test_an_end_is_found_by_its_operation_and_by_its_interrupts() -> None:
    kept = SettledOperations(Shelf())
    kept.keep(ended(1))
    assert kept.find("op-1") == kept.of_interrupt("int-a1") == kept.of_interrupt("int-u1") == ended(1)
    assert (kept.find("op-2"), kept.of_interrupt("int-a2")) == (None, None)
    kept.clear()
    assert (len(kept), kept.find("op-1"), kept.of_interrupt("int-a1"), kept._timer) == (0, None, None, None)


@pytest.mark.spec("calls")
async def test_a_thousand_ends_are_kept_and_the_oldest_goes_first() -> None:
    kept = SettledOperations(Shelf())
    for number in range(KEPT_MAX + 1):
        kept.keep(ended(number))
    assert (module.KEPT_S, KEPT_MAX, len(kept)) == (600.0, 1000, 1000)
    assert (kept.find("op-0"), kept.of_interrupt("int-a0"), kept.of_interrupt("int-u0")) == (None, None, None)
    assert kept.find("op-1") == ended(1)
    assert len(kept._by_interrupt) == 2 * KEPT_MAX
    kept.clear()


@pytest.mark.spec("limits")
async def test_large_results_are_kept_up_to_a_sum_and_the_last_one_always() -> None:
    kept = SettledOperations(Shelf())
    half = KEPT_BYTES_MAX // 2
    for number in range(3):
        kept.keep(sized(number, half))
    assert kept_of(kept, 3) == [1, 2]
    kept.keep(sized(3, KEPT_BYTES_MAX + 1))
    assert kept_of(kept, 4) == [3]
    kept.clear()
    assert kept.size == 0


@pytest.mark.spec("limits")
async def test_where_the_daemon_keeps_too_much_the_workspace_that_keeps_the_most_loses_its_oldest() -> None:
    shelf = Shelf(12 * BASE * 256 // 255 + 1)  # with the slack above what is left
    much, little = SettledOperations(shelf), SettledOperations(shelf)
    for number in range(4):
        much.keep(sized(number, 2 * BASE))
    little.keep(sized(0, 2 * BASE))
    assert (kept_of(much, 4), kept_of(little, 1)) == ([0, 1, 2, 3], [0])
    for number in (1, 2):
        little.keep(sized(number, 2 * BASE))
    assert (kept_of(much, 4), kept_of(little, 3)) == ([1, 2, 3], [0, 1, 2])
    little.keep(sized(3, 11 * BASE))
    assert (kept_of(much, 4), kept_of(little, 4)) == ([], [3])
    little.keep(sized(4, 13 * BASE))
    assert (kept_of(little, 5), shelf._size) == ([4], 13 * BASE)
    little.clear()
    much.clear()
    assert (shelf._size, shelf._keeping, SHELF_BYTES_MAX) == (0, set(), 256 * 1024 * 1024)


async def test_a_full_shelf_makes_room_for_many_ends_at_once() -> None:
    shelf = Shelf(1024 * BASE)
    everybody = [SettledOperations(shelf) for _ in range(8)]
    for number in range(1024):
        everybody[number % 8].keep(sized(number, BASE))
    assert sum(map(len, everybody)) == 1024
    lengths = list[int]()
    for number in range(10):
        everybody[0].keep(sized(1024 + number, BASE))
        lengths.append(sum(map(len, everybody)))
    # Five go together, four beyond what must: then there is room for four.
    assert lengths == [1020, 1021, 1022, 1023, 1024, 1020, 1021, 1022, 1023, 1024]


@pytest.mark.spec("calls")
async def test_what_is_not_due_stays_and_the_timer_is_set_for_it() -> None:
    kept = SettledOperations(Shelf())
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
    kept = SettledOperations(Shelf(), kept_s=0.05)
    kept.keep(ended(1))
    first = kept._timer
    kept.keep(ended(2))
    assert kept._timer is first
    with anyio.fail_after(5):
        while len(kept):
            await anyio.sleep(0.01)
    assert (kept._timer, kept._by_interrupt, kept.size) == (None, {}, 0)
    kept.keep(ended(3))
    assert kept._timer is not None
    kept.clear()
