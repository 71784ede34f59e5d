"""Whole runs, event by event and member by member, as SPEC §agui gives them."""

import anyio
import pytest

from app.core.answers import Progress
from app.core.problems import ProtocolRevisionUnsupported
from tests.support.agui_events import JsonEvent
from tests.support.agui_runs import (
    EMPTY,
    LIST,
    STARTED,
    answered_run,
    finished,
    interrupts_of,
    refused,
    types,
)
from tests.support.doors_house import DEFINITION, PROJECT, call, doors_house, text_result

pytestmark = pytest.mark.spec("agui")


async def test_an_attach_that_is_done() -> None:
    async with doors_house({}) as doors:
        doors.house.connector.catalogs["project"] = PROJECT
        events = await doors.run({"kind": "workspace.mcp.attach", "server": DEFINITION})
    result = events[-1]["result"]["result"]
    revision = result["server"]["revision"]
    entry = {
        "name": "project",
        "source": "workspace",
        "transport": "stdio",
        "state": "connected",
        "revision": revision,
        "tools": 2,
        "resources": 0,
        "prompts": 0,
    }
    summary = {
        "name": "project",
        "source": "workspace",
        "transport": "stdio",
        "state": "connected",
        "enabledTools": None,
        "read": ["echo"],
        "withheld": [],
        "protocolVersion": "2026-07-28",
        "server": {"name": "gated", "version": "1"},
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
        "tools": ["deploy", "echo"],
        "resources": 0,
        "resourceTemplates": 0,
        "prompts": 0,
        "revision": revision,
        "live": False,
    }
    value = {"kind": "workspace.mcp.attach", "ok": True, "result": {"status": 201, "server": summary}}
    assert events == [
        STARTED,
        {"type": "STATE_SNAPSHOT", "snapshot": {"plurnk": EMPTY}},
        {"type": "STEP_STARTED", "stepName": "prepare:project"},
        {"type": "STEP_FINISHED", "stepName": "prepare:project"},
        {
            "type": "STATE_DELTA",
            "delta": [
                {"op": "add", "path": "/plurnk/servers/project", "value": entry},
                {"op": "replace", "path": "/plurnk/rev", "value": 1},
            ],
        },
        *finished(value),
    ]


@pytest.mark.spec("problems")
async def test_an_attach_that_is_refused() -> None:
    problem = ProtocolRevisionUnsupported("project", "stdio", answered="a JSON-RPC error")
    async with doors_house({}) as doors:
        doors.house.connector.refusal = problem
        events = await doors.run({"kind": "workspace.mcp.attach", "server": DEFINITION})
    assert events == [
        STARTED,
        {"type": "STATE_SNAPSHOT", "snapshot": {"plurnk": EMPTY}},
        {"type": "STEP_STARTED", "stepName": "prepare:project"},
        {"type": "STEP_FINISHED", "stepName": "prepare:project"},
        *finished(refused("workspace.mcp.attach", problem)),
    ]


async def test_a_call_with_progress() -> None:
    async with doors_house() as doors:
        await doors.run(LIST)
        events: list[JsonEvent] = []

        async def run() -> None:
            events.extend(await doors.run(call(svc="api"), state={"app": {"n": None}}))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            request = await doors.peer.next_request()
            assert request.on_progress is not None
            request.on_progress(Progress(0, 3, "starting"))
            request.on_progress(Progress(1, 3))
            request.result(text_result("deployed to staging"))
        snapshot = doors.house.workspace.state.snapshot()
    start = events[2]
    call_id, operation = start["toolCallId"], start["metadata"]["plurnk"]["operation"]
    activity = {"messageId": f"progress-{call_id}", "activityType": "plurnk.mcp.progress"}
    result = {
        "status": 200,
        "operation": operation,
        "toolCallId": call_id,
        "isError": False,
        "content": [{"type": "text", "text": "deployed to staging"}],
    }
    assert events[0] == STARTED
    assert events[1]["snapshot"]["app"] == {"n": None}
    assert events[1]["snapshot"]["plurnk"]["servers"] == snapshot["servers"]
    assert events[2:] == [
        {
            "type": "TOOL_CALL_START",
            "toolCallId": call_id,
            "toolCallName": "echo",
            "metadata": {"plurnk": {"server": "project", "tool": "echo", "operation": operation}},
        },
        {"type": "TOOL_CALL_ARGS", "toolCallId": call_id, "delta": '{"svc":"api"}'},
        {"type": "TOOL_CALL_END", "toolCallId": call_id},
        {
            "type": "ACTIVITY_SNAPSHOT",
            **activity,
            "content": {"toolCallId": call_id, "progress": 0, "total": 3, "message": "starting"},
        },
        {
            "type": "ACTIVITY_DELTA",
            **activity,
            "patch": [{"op": "replace", "path": "/progress", "value": 1}],
        },
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"result-{call_id}",
            "toolCallId": call_id,
            "role": "tool",
            "content": "deployed to staging",
            "metadata": {"plurnk": {"isError": False}},
        },
        *finished({"kind": "workspace.mcp.call", "ok": True, "result": result}),
    ]


async def test_a_proposal_and_its_answer() -> None:
    async with doors_house() as doors:
        await doors.run(LIST)
        asked = await doors.run(call("deploy", svc="api"))
        (interrupt,) = interrupts_of(asked)
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"decision": "accept"}}
        told = await answered_run(doors, None, text_result("done"), resume=[answer], runId="run-2")
        again = await doors.run(resume=[answer], runId="run-3")
    call_id, operation = asked[2]["toolCallId"], asked[2]["metadata"]["plurnk"]["operation"]
    assert types(asked) == [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "STATE_DELTA",
        "RUN_FINISHED",
    ]
    shown = {each["path"]: (each["op"], each.get("value")) for each in asked[5]["delta"]}
    entry = {"server": "project", "tool": "deploy", "state": "input_required"}
    assert shown[f"/plurnk/operations/{operation}"] == ("add", entry)
    interaction = shown[f"/plurnk/interactions/{interrupt['id']}"]
    assert interaction == (
        "add",
        {
            "operation": operation,
            "threadId": "thread-1",
            "server": "project",
            "tool": "deploy",
            "message": interrupt["message"],
            "expiresAt": interrupt["expiresAt"],
        },
    )
    assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", call_id)
    assert interrupt["metadata"]["plurnk"]["operation"] == operation
    assert set(asked[-1]) == {"type", "threadId", "runId", "outcome"}
    plurnk = told[1]["snapshot"]["plurnk"]
    assert (plurnk["operations"], plurnk["interactions"]) == (
        {operation: entry},
        {interrupt["id"]: interaction[1]},
    )
    assert [each for each in types(told) if each != "STATE_DELTA"] == [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "TOOL_CALL_RESULT",
        "CUSTOM",
        "RUN_FINISHED",
    ]
    removed = {each["path"] for event in told if event["type"] == "STATE_DELTA" for each in event["delta"]}
    assert removed == {
        f"/plurnk/operations/{operation}",
        f"/plurnk/interactions/{interrupt['id']}",
        "/plurnk/rev",
    }
    assert told[-1]["result"]["result"]["content"] == [{"type": "text", "text": "done"}]
    assert told[-1]["result"] == again[-1]["result"]
