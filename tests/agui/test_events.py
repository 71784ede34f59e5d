"""What happens inside a run, as events: member by member, absent fields left out."""

from typing import Any

import orjson
import pytest

from app.agui import events
from app.agui.events import (
    EVENT_MAX,
    progress_delta,
    progress_snapshot,
    run_started,
    state_delta,
    state_snapshot,
    step_finished,
    step_started,
    tool_call,
    tool_call_result,
)
from app.core.answers import Progress
from app.core.events import OperationProgressed, ToolCallEnded, ToolCallStarted
from app.workspaces.live_state import encoded_changes
from tests.support.agui_events import JsonEvent, parse_event

pytestmark = pytest.mark.spec("agui")


def judged(event: bytes) -> JsonEvent:
    return parse_event(event.decode())


def ended(*content: Any, is_error: bool = False) -> ToolCallEnded:
    return ToolCallEnded("op-7", "call-a9", is_error, list(content))


def progressed(
    progress: float, total: float | None = None, message: str | None = None
) -> OperationProgressed:
    return OperationProgressed("op-7", "call-a9", Progress(progress, total, message))


@pytest.mark.parametrize(
    "parent, more", [(None, {}), ("run-0", {"parentRunId": "run-0"})], ids=["no parent", "parent"]
)
def test_a_run_starts_with_the_version(parent: str | None, more: JsonEvent) -> None:
    expected = {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0", **more}
    assert judged(run_started("t", "r", parent)) == expected


def test_a_snapshot_keeps_the_clients_own_state_and_replaces_our_part() -> None:
    snapshot = judged(state_snapshot({"app": {"n": None}, "plurnk": "stale"}, b'{"rev":3}'))
    assert snapshot == {"type": "STATE_SNAPSHOT", "snapshot": {"app": {"n": None}, "plurnk": {"rev": 3}}}


def test_a_snapshot_for_a_client_without_a_state_is_our_part() -> None:
    snapshot = judged(state_snapshot({}, b'{"rev":3}'))
    assert snapshot == {"type": "STATE_SNAPSHOT", "snapshot": {"plurnk": {"rev": 3}}}


def test_a_delta_is_its_changes_and_the_revision_they_lead_to() -> None:
    changes: list[Any] = [{"op": "remove", "path": f"/plurnk/servers/{name}"} for name in "pqr"]
    revision = {"op": "replace", "path": "/plurnk/rev", "value": 7}
    told = judged(state_delta([encoded_changes(changes[:2]), encoded_changes(changes[2:])], 7))
    assert told == {"type": "STATE_DELTA", "delta": [*changes, revision]}


def test_a_preparation_is_a_step() -> None:
    assert judged(step_started("project")) == {"type": "STEP_STARTED", "stepName": "prepare:project"}
    assert judged(step_finished("project")) == {"type": "STEP_FINISHED", "stepName": "prepare:project"}


def test_a_tool_call_starts_with_its_exact_name_and_complete_arguments() -> None:
    started = ToolCallStarted("op-7", "call-a9", "project", "über/deploy", {"svc": "api", "n": None})
    assert [judged(each) for each in tool_call(started)] == [
        {
            "type": "TOOL_CALL_START",
            "toolCallId": "call-a9",
            "toolCallName": "über/deploy",
            "metadata": {"plurnk": {"server": "project", "tool": "über/deploy", "operation": "op-7"}},
        },
        {"type": "TOOL_CALL_ARGS", "toolCallId": "call-a9", "delta": '{"svc":"api","n":null}'},
        {"type": "TOOL_CALL_END", "toolCallId": "call-a9"},
    ]


TEXT = {"type": "text", "text": "deployed"}
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}


@pytest.mark.parametrize(
    "content, shown",
    [
        ((TEXT,), "deployed"),
        ((TEXT, {"type": "text", "text": "to\nstaging"}), "deployed\nto\nstaging"),
        ((IMAGE, TEXT), "deployed"),
        (({"type": "text", "text": ""},), ""),
        ((IMAGE,), '[{"type":"image","data":"AA==","mimeType":"image/png"}]'),
        ((), "[]"),
        (({"type": "resource_link", "uri": "a:b"},), '[{"type":"resource_link","uri":"a:b"}]'),
    ],
)
def test_a_result_is_its_text_or_else_its_json(content: tuple[Any, ...], shown: str) -> None:
    assert judged(tool_call_result(ended(*content))) == {
        "type": "TOOL_CALL_RESULT",
        "messageId": "result-call-a9",
        "toolCallId": "call-a9",
        "role": "tool",
        "content": shown,
        "metadata": {"plurnk": {"isError": False}},
    }


def test_a_tool_error_is_marked() -> None:
    assert judged(tool_call_result(ended(TEXT, is_error=True)))["metadata"] == {"plurnk": {"isError": True}}


@pytest.mark.spec("limits")
def test_a_result_that_no_event_can_carry_is_replaced_by_a_sentence() -> None:
    assert EVENT_MAX == 8 * 1024 * 1024
    event = tool_call_result(ended({"type": "text", "text": '"' * (EVENT_MAX // 2)}, is_error=True))
    assert len(event) < 1000
    assert judged(event)["metadata"] == {"plurnk": {"isError": True, "omitted": True}}
    assert judged(event)["content"] == events.OMITTED


def test_the_first_progress_is_a_snapshot() -> None:
    assert judged(progress_snapshot(progressed(0, 3, "starting"))) == {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": "progress-call-a9",
        "activityType": "plurnk.mcp.progress",
        "content": {"toolCallId": "call-a9", "progress": 0, "total": 3, "message": "starting"},
    }


def test_the_progress_of_a_read_is_its_operations() -> None:
    event = OperationProgressed("op-7", None, Progress(1, None, None))
    assert judged(progress_snapshot(event)) == {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": "progress-op-7",
        "activityType": "plurnk.mcp.progress",
        "content": {"operation": "op-7", "progress": 1},
    }
    assert judged(progress_delta(event, Progress(0, None, None)))["messageId"] == "progress-op-7"


def test_progress_that_the_peer_counts_in_floats_reads_as_it_counts() -> None:
    snapshot = progress_snapshot(progressed(1.0, 2.5))
    assert b'"progress":1,"total":2.5' in snapshot


@pytest.mark.parametrize(
    "since, latest, patch",
    [
        ((0, 3, "starting"), (1,), [("replace", "progress", 1)]),
        ((0, 3, "a"), (1, 3, "a"), [("replace", "progress", 1)]),
        ((0, 3, "a"), (1, 3, "b"), [("replace", "progress", 1), ("replace", "message", "b")]),
        ((0,), (1, 3, "b"), [("replace", "progress", 1), ("add", "total", 3), ("add", "message", "b")]),
        ((1, 3), (2, 4), [("replace", "progress", 2), ("replace", "total", 4)]),
    ],
)
def test_later_progress_is_what_is_new(since: Any, latest: Any, patch: list[tuple[str, str, Any]]) -> None:
    delta = judged(progress_delta(progressed(*latest), Progress(*since)))
    assert delta == {
        "type": "ACTIVITY_DELTA",
        "messageId": "progress-call-a9",
        "activityType": "plurnk.mcp.progress",
        "patch": [{"op": op, "path": f"/{name}", "value": value} for op, name, value in patch],
    }


def test_an_event_is_encoded_when_it_is_made() -> None:
    arguments: Any = {"n": 1}
    _, encoded, _ = tool_call(ToolCallStarted("op", "call", "s", "t", arguments))
    arguments["n"] = 2
    assert orjson.loads(encoded)["delta"] == '{"n":1}'
