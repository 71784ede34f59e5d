"""``workspace.mcp.watch`` beside the calls of others: their progress and questions, from a snapshot on."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import orjson
import pytest

from app.core.answers import Progress
from tests.support.agui_events import JsonEvent
from tests.support.agui_runs import interrupts_of
from tests.support.doors_house import call, doors_house, run_input, text_result
from tests.support.eliciting import asks, form
from tests.support.eventually import eventually
from tests.support.live_state import applied

pytestmark = pytest.mark.spec("agui", "watch")

BOTH = [{"progress": 999, "total": 4, "message": "copying"}, {"progress": 999, "message": "999"}]


def shown_of(operations: Any) -> list[Any]:
    """Return the progress of each operation, in the order in which they began."""
    return [entry.get("progress") for entry in operations.values()]


def changes_of(events: list[JsonEvent]) -> list[str]:
    """Return the kinds of all changes, those of the revision left out."""
    deltas = [event["delta"][:-1] for event in events if event["type"] == "STATE_DELTA"]
    return [each["op"] for delta in deltas for each in delta]


async def heard(lines: AsyncIterator[str], events: list[JsonEvent]) -> None:
    """Add each event of the stream as it comes."""
    async for line in lines:
        if line.startswith("data: "):
            events += [orjson.loads(line.removeprefix("data: "))]


async def test_a_watch_shows_the_progress_of_everybody_and_a_run_not_its_own() -> None:
    watched: list[JsonEvent] = []
    called: list[JsonEvent] = []
    before: Any = None
    async with doors_house() as doors, anyio.create_task_group() as group:
        await doors.act({"kind": "workspace.mcp.list"})
        group.start_soon(doors.act, call(svc="first"))
        first = await doors.peer.next_request()
        assert first.on_progress is not None
        first.on_progress(Progress(1, 4, "copying"))
        before = doors.house.state("operations")

        async def watch() -> None:
            asked = run_input({"kind": "workspace.mcp.watch"})
            async with doors.client() as client, client.stream("POST", "/", json=asked) as answer:
                await heard(answer.aiter_lines(), watched)

        async def other() -> None:
            called.extend(await doors.run(call(svc="second"), threadId="t2", runId="r2"))

        group.start_soon(watch)
        await eventually(lambda: doors.house.workspace.state.has_listeners)
        group.start_soon(other)
        second = await doors.peer.next_request()
        assert second.on_progress is not None
        for number in range(2, 1000):
            first.on_progress(Progress(number))
            second.on_progress(Progress(number, None, f"{number}"))
        await eventually(lambda: shown_of(doors.house.state("operations")) == BOTH)
        first.result(text_result("done"))
        second.result(asks(q=form()))
        await eventually(lambda: bool(called) and changes_of(watched)[-3:] == ["remove", "add", "add"])
        group.cancel_scope.cancel()
    document: Any = watched[1]["snapshot"]["plurnk"]
    assert document["operations"] == before
    seen: list[Any] = []
    deltas = [event["delta"] for event in watched if event["type"] == "STATE_DELTA"]
    for delta in deltas:
        applied(document, delta)
        seen.append(shown_of(document["operations"]))
    assert BOTH in seen
    (interrupt,) = interrupts_of(called)
    assert list(document["interactions"]) == [interrupt["id"]]
    (waiting,) = document["operations"].values()
    assert waiting == {"server": "project", "tool": "echo", "state": "input_required"}
    # Begin, progress of both in two intervals and the beginning of one, and the two ends.
    assert len(deltas) <= 8
    own = called[2]["metadata"]["plurnk"]["operation"]
    shown = [
        change["value"]["state"]
        for event in called
        if event["type"] == "STATE_DELTA"
        for change in event["delta"]
        if change["path"] == f"/plurnk/operations/{own}"
    ]
    assert shown == ["input_required"]
