"""Reading and judging an AG-UI event stream: framing, each event by the protocol's model, order. AG-UI 1.0.

The order is what the official client verifies, and beyond it that a run ends with one terminal event.
"""

import json
from collections.abc import Callable
from typing import Any

from ag_ui.core import Event
from pydantic import TypeAdapter

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)
TERMINAL = frozenset({"RUN_FINISHED", "RUN_ERROR"})
JsonEvent = dict[str, Any]


def parse_stream(body: bytes) -> list[JsonEvent]:
    """Return the events of a whole body after checking that its framing is what every client reads."""
    assert b"\r" not in body, "only LF may end a line"
    assert body.endswith(b"\n\n"), "the last event is not complete"
    events: list[JsonEvent] = []
    for frame in body.decode("utf-8").removesuffix("\n\n").split("\n\n"):
        if frame.startswith(":"):
            continue
        assert frame.startswith("data: "), frame
        assert "\n" not in frame, frame
        events.append(parse_event(frame.removeprefix("data: ")))
    return events


def parse_event(text: str) -> JsonEvent:
    """Return one event after judging it by the protocol's own model and by the rule about absent members."""
    event: JsonEvent = json.loads(text, parse_constant=_refuse)
    judged = _EVENT.validate_python(event)
    assert not judged.model_extra, f"members that the protocol does not know: {judged.model_extra}"
    absent = [name for name, value in event.items() if value is None and name != "value"]
    assert not absent, f"absent members are left out, not null: {absent}"
    return event


def verify_run(events: list[JsonEvent]) -> list[JsonEvent]:
    """Return the events of one run after checking their order."""
    types = [event["type"] for event in events]
    assert types[0] == "RUN_STARTED"
    assert types.count("RUN_STARTED") == 1
    assert [each for each in types if each in TERMINAL] == types[-1:], "one terminal event, the last"
    open_steps: list[str] = []
    open_calls: list[str] = []
    handlers: dict[str, Callable[[JsonEvent], None]] = {
        "STEP_STARTED": lambda event: _open(open_steps, event["stepName"]),
        "STEP_FINISHED": lambda event: open_steps.remove(event["stepName"]),
        "TOOL_CALL_START": lambda event: _open(open_calls, event["toolCallId"]),
        "TOOL_CALL_ARGS": lambda event: _is_open(open_calls, event["toolCallId"]),
        "TOOL_CALL_END": lambda event: open_calls.remove(event["toolCallId"]),
    }
    for event in events:
        handlers.get(event["type"], _ignore)(event)
    assert not open_calls
    assert not open_steps
    results = [event for event in events if event["type"] == "CUSTOM"]
    assert len(results) == (0 if _is_interrupted(events[-1]) else 1), (
        "one action result, none when interrupted"
    )
    if results and types[-1] == "RUN_FINISHED":
        assert events[-1]["result"] == results[0]["value"]
    return events


def _is_interrupted(event: JsonEvent) -> bool:
    return event.get("outcome", {}).get("type") == "interrupt"


def _open(opened: list[str], name: str) -> None:
    assert name not in opened
    opened.append(name)


def _is_open(opened: list[str], name: str) -> None:
    assert name in opened


def _ignore(_event: JsonEvent) -> None:
    return


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is no JSON")
