"""Running through the AG-UI door and looking at how it ends; the peers answer as told. SPEC §agui."""

from typing import Any

import anyio

from app.core.problem import Problem, Stage
from tests.support.agui_events import JsonEvent
from tests.support.doors_house import DoorsHouse
from tests.support.eventually import eventually

LIST = {"kind": "workspace.mcp.list"}
STARTED = {"type": "RUN_STARTED", "threadId": "thread-1", "runId": "run-1", "protocolVersion": "1.0"}
EMPTY = {"workspace": "w", "rev": 0, "servers": {}, "pending": {}, "operations": {}, "interactions": {}}


def types(events: list[JsonEvent]) -> list[str]:
    return [event["type"] for event in events]


def finished(value: JsonEvent, outcome: str = "success") -> list[JsonEvent]:
    """Return how a run ends whose action ended in this value."""
    ids = {"threadId": "thread-1", "runId": "run-1"}
    return [
        {"type": "CUSTOM", "name": "plurnk.action.result", "value": value},
        {"type": "RUN_FINISHED", **ids, "result": value, "outcome": {"type": outcome}},
    ]


def refused(kind: str | None, problem: Problem, stage: Stage = Stage.MANAGEMENT) -> JsonEvent:
    named = {} if kind is None else {"kind": kind}
    return {**named, "ok": False, "problem": problem.document(stage)}


def interrupts_of(events: list[JsonEvent]) -> list[JsonEvent]:
    assert events[-1]["outcome"]["type"] == "interrupt"
    return events[-1]["outcome"]["interrupts"]


def code(events: list[JsonEvent]) -> str:
    return events[-1]["result"]["problem"]["code"]


async def answered_run(doors: DoorsHouse, action: Any, *results: Any, **members: Any) -> list[JsonEvent]:
    """Return the events of a run whose peer answers its requests with these results."""
    events: list[JsonEvent] = []

    async def run() -> None:
        events.extend(await doors.run(action, **members))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        for result in results:
            await eventually(lambda: doors.house.connector.opened)
            (await doors.peer.next_request()).result(result)
    return events
