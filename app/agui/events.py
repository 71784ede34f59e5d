"""What happens inside a run, as AG-UI events in bytes, encoded when it happens. SPEC §agui; AG-UI 1.0.

Pure: values in, bytes of one JSON object out. Framing and the wire are ``stream``'s, how a run ends is
    ``envelopes``'.
Absent fields are left out, never null.
"""

from typing import Any

import orjson

from app.core.answers import Progress
from app.core.events import OperationProgressed, ToolCallEnded, ToolCallStarted
from app.core.json_value import JsonObject

PROTOCOL_VERSION = "1.0"
EVENT_MAX = 8 * 1024 * 1024
"""Bytes of one event; the official client gives up beyond 10 MiB."""
PROGRESS = "plurnk.mcp.progress"
OMITTED = "The result is too large for one event; the action's result says more."


def run_started(thread_id: str, run_id: str, parent_run_id: str | None) -> bytes:
    """Return the first event of every run."""
    event: JsonObject = {"type": "RUN_STARTED", "threadId": thread_id, "runId": run_id}
    event["protocolVersion"] = PROTOCOL_VERSION
    if parent_run_id is not None:
        event["parentRunId"] = parent_run_id
    return orjson.dumps(event)


def state_snapshot(client_state: JsonObject, plurnk: bytes) -> bytes:
    """Return the client's own state with our part, which is JSON, put into it; it replaces what the client holds."""
    if not client_state:
        return b'{"type":"STATE_SNAPSHOT","snapshot":{"plurnk":%b}}' % plurnk
    snapshot = {**client_state, "plurnk": orjson.Fragment(plurnk)}
    return orjson.dumps({"type": "STATE_SNAPSHOT", "snapshot": snapshot})


def state_delta(changes: list[bytes], revision: int) -> bytes:
    """Return changes of our part of the state up to the revision: lists of RFC 6902 without their brackets."""
    return b'{"type":"STATE_DELTA","delta":[%b,{"op":"replace","path":"/plurnk/rev","value":%d}]}' % (
        b",".join(changes),
        revision,
    )


def step_started(server: str) -> bytes:
    """Return the begin of a server's preparation."""
    return orjson.dumps({"type": "STEP_STARTED", "stepName": f"prepare:{server}"})


def step_finished(server: str) -> bytes:
    """Return the end of a server's preparation."""
    return orjson.dumps({"type": "STEP_FINISHED", "stepName": f"prepare:{server}"})


def tool_call(event: ToolCallStarted) -> tuple[bytes, bytes, bytes]:
    """Return start, arguments and end: the arguments are complete before the call begins."""
    call = event.tool_call_id
    metadata = {"plurnk": {"server": event.server, "tool": event.tool, "operation": event.operation}}
    start = {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": event.tool, "metadata": metadata}
    arguments = orjson.dumps(event.arguments).decode()
    return (
        orjson.dumps(start),
        orjson.dumps({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments}),
        orjson.dumps({"type": "TOOL_CALL_END", "toolCallId": call}),
    )


def tool_call_result(event: ToolCallEnded) -> bytes:
    """Return the result as a tool message; one that no event can carry is replaced by a sentence."""
    encoded = _tool_call_result(event, _text(event.content), {"isError": event.is_error})
    if len(encoded) <= EVENT_MAX:
        return encoded
    return _tool_call_result(event, OMITTED, {"isError": event.is_error, "omitted": True})


def progress_snapshot(event: OperationProgressed) -> bytes:
    """Return the first progress of a call or read that a run shows."""
    activity = {"messageId": _progress_id(event), "activityType": PROGRESS}
    call, operation = {"toolCallId": event.tool_call_id}, {"operation": event.operation}
    content = {**(operation if event.tool_call_id is None else call), **event.progress.document()}
    return orjson.dumps({"type": "ACTIVITY_SNAPSHOT", **activity, "content": content})


def progress_delta(event: OperationProgressed, since: Progress) -> bytes:
    """Return what is new since the progress that was shown last; what the peer left out stays as it was."""
    before = since.document()
    patch: list[JsonObject] = [
        {"op": "replace" if name in before else "add", "path": f"/{name}", "value": value}
        for name, value in event.progress.document().items()
        if name == "progress" or before.get(name) != value
    ]
    activity = {"messageId": _progress_id(event), "activityType": PROGRESS}
    return orjson.dumps({"type": "ACTIVITY_DELTA", **activity, "patch": patch})


def _tool_call_result(event: ToolCallEnded, content: str, plurnk: JsonObject) -> bytes:
    call = event.tool_call_id
    return orjson.dumps(
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"result-{call}",
            "toolCallId": call,
            "role": "tool",
            "content": content,
            "metadata": {"plurnk": plurnk},
        }
    )


def _text(content: list[Any]) -> str:
    """Return the text parts joined by LF; where there is none, the JSON of the content."""
    texts = [str(part["text"]) for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(texts) if texts else orjson.dumps(content).decode()


def _progress_id(event: OperationProgressed) -> str:
    return f"progress-{event.tool_call_id or event.operation}"
