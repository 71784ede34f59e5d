"""When progress is shown: the first report at once, all others together, the last one always."""

from collections.abc import Collection
from functools import partial

import anyio
import pytest

from app.core.answers import Progress
from app.operations.live_progress import INTERVAL_S, LiveProgress
from app.operations.tool_call import call
from tests.support.board_house import RESULT, peers
from tests.support.eventually import eventually
from tests.support.live_state import applied

pytestmark = pytest.mark.spec("agui")


async def test_the_first_report_is_shown_at_once_and_the_others_together_at_the_end_of_an_interval() -> None:
    shown: list[list[str]] = []

    def show(reported: Collection[str]) -> None:
        shown.append([*reported])

    live = LiveProgress(show, interval_s=0.05)
    live.reported("a")
    assert shown == [["a"]]
    for _ in range(1000):
        live.reported("b")
        live.reported("a")
    assert shown == [["a"]]
    await eventually(lambda: shown == [["a"], ["b", "a"]])
    await anyio.sleep(0.12)  # two intervals without any
    assert len(shown) == 2
    live.reported("c")
    assert shown[2:] == [["c"]]


async def test_a_flood_of_reports_costs_few_changes_from_which_none_is_missing() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        state = house.workspace.state
        document, deltas = state.snapshot(), []
        state.subscribe(deltas.append)
        for _ in range(3):
            group.start_soon(partial(call, house.board, "p", "get", {}, observe=house.events.append))
        requests = [await house.peer.next_request() for _ in range(3)]
        began, begun_with = anyio.current_time(), len(deltas)
        total = 2000
        for number in range(total + 1):
            for request in requests:
                assert request.on_progress is not None
                request.on_progress(Progress(float(number), total if not number else None, "m" * 1000))
            if not number % 500:
                await anyio.sleep(0.01)
        final = {"progress": total, "total": total, "message": "m" * 199 + "…"}
        await eventually(
            lambda: [each.get("progress") for each in house.state("operations").values()] == [final] * 3
        )
        took = anyio.current_time() - began
        # The first report, and one delta an interval for all three together.
        assert len(deltas) - begun_with <= 2 + took / INTERVAL_S
        assert len(house.events) == 3 + 3 * (total + 1)
        for request in requests:
            request.result(RESULT)
        await eventually(lambda: not house.state("operations"))
        for delta in deltas:
            applied(document, list(delta))
        assert document == state.snapshot()


async def test_what_was_reported_by_an_operation_that_ended_is_shown_no_more() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(partial(call, house.board, "p", "get", {}, observe=house.events.append))
        requests = [await house.peer.next_request() for _ in range(2)]
        for request in requests:
            assert request.on_progress is not None
            request.on_progress(Progress(1))
            request.result(RESULT)
        await eventually(lambda: not house.state("operations"))
        rev = house.workspace.state.snapshot()["rev"]
        await anyio.sleep(INTERVAL_S + 0.1)
        assert house.workspace.state.snapshot()["rev"] == rev
