"""Telling one run's story: steps in pairs, progress from snapshot to deltas."""

import pytest

from app.agui import stream as stream_module
from app.agui.narration import Narration
from app.agui.state_view import StateView
from app.agui.stream import EventStream
from app.core.answers import Progress
from app.core.events import (
    OperationProgressed,
    PreparationEnded,
    PreparationStarted,
    RunEvent,
    ToolCallEnded,
    ToolCallStarted,
)
from app.doors.asgi import Message
from app.workspaces.live_state import LiveState
from tests.support.agui_events import JsonEvent, parse_stream

pytestmark = pytest.mark.spec("agui")


class Told:
    """A narration and what its stream wrote."""

    def __init__(self) -> None:
        self.body = b""
        self.state = LiveState("w")
        view = StateView(self.state, {})
        self.stream = EventStream(self._send, view, on_stall=lambda: None)
        self.narration = Narration(self.stream)
        view.follow()

    async def _send(self, message: Message) -> None:
        self.body += message.get("body", b"")

    async def events(self, *events: RunEvent) -> list[JsonEvent]:
        """Observe these, end the run and return all that was written."""
        self.stream.emit(b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}')
        for event in events:
            self.narration.observe(event)
        self.narration.close()
        await self.stream.finish()
        return parse_stream(self.body)[1:]


def progressed(
    progress: float, message: str | None = None, call: str | None = "call-1"
) -> OperationProgressed:
    return OperationProgressed(f"op-of-{call}", call, Progress(progress, 3, message))


async def types(*events: RunEvent) -> list[str]:
    return [event["type"] for event in await Told().events(*events)]


async def test_a_call_is_told_in_order() -> None:
    assert await types(
        ToolCallStarted("op-1", "call-1", "p", "deploy", {}),
        progressed(0),
        progressed(1),
        ToolCallEnded("op-1", "call-1", is_error=False, content=[]),
    ) == [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "ACTIVITY_SNAPSHOT",
        "ACTIVITY_DELTA",
        "TOOL_CALL_RESULT",
    ]


async def test_each_delta_follows_from_what_was_shown_before() -> None:
    told = await Told().events(progressed(0, "a"), progressed(1), progressed(2, "a"), progressed(3, "b"))
    assert [[(each["path"], each["value"]) for each in event["patch"]] for event in told[1:]] == [
        [("/progress", 1)],
        [("/progress", 2)],
        [("/progress", 3), ("/message", "b")],
    ]


async def test_the_progress_of_two_calls_is_told_apart() -> None:
    told = await Told().events(progressed(0), progressed(0, call="call-2"))
    assert [(event["type"], event["messageId"]) for event in told] == [
        ("ACTIVITY_SNAPSHOT", "progress-call-1"),
        ("ACTIVITY_SNAPSHOT", "progress-call-2"),
    ]


async def test_progress_that_a_slow_client_lost_is_not_built_upon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "BEHIND", -1)
    told = Told()
    told.narration.observe(progressed(0, "lost"))
    monkeypatch.setattr(stream_module, "BEHIND", 1000)
    events = await told.events(progressed(1, "seen"))
    assert [(event["type"], event["content"]["message"]) for event in events] == [
        ("ACTIVITY_SNAPSHOT", "seen")
    ]


async def test_a_step_that_was_not_ended_is_closed_and_none_begins_twice() -> None:
    told = await Told().events(
        PreparationStarted("p"),
        PreparationStarted("p"),
        PreparationStarted("q"),
        PreparationEnded("p"),
        PreparationEnded("p"),
    )
    assert [(event["type"], event["stepName"]) for event in told] == [
        ("STEP_STARTED", "prepare:p"),
        ("STEP_STARTED", "prepare:q"),
        ("STEP_FINISHED", "prepare:p"),
        ("STEP_FINISHED", "prepare:q"),
    ]


async def test_changes_of_the_state_are_told_in_the_order_they_happen() -> None:
    told = Told()
    told.state.put("servers", "p", {"name": "p"})
    told.narration.observe(PreparationStarted("q"))
    told.state.drop("servers", "p")
    await told.stream.finish(b'{"type":"RUN_FINISHED","threadId":"t","runId":"r"}')
    assert [event["type"] for event in parse_stream(told.body)] == [
        "STATE_DELTA",
        "STEP_STARTED",
        "STATE_DELTA",
        "RUN_FINISHED",
    ]
