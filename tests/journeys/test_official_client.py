"""The official AG-UI client drives the daemon and has nothing to complain about. SPEC §agui, §actions."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.official_client import Answer, OfficialClient, official_client
from tests.support.peers.programs import http_definition, scripted_definition, stdio_definition

# npm may have to install the client first.
pytestmark = pytest.mark.timeout(400)

ATTACH_EVENTS = [
    "RUN_STARTED",
    "STATE_SNAPSHOT",
    "STEP_STARTED",
    "STEP_FINISHED",
    "STATE_DELTA",
    "CUSTOM",
    "RUN_FINISHED",
]
PLAIN_EVENTS = ["RUN_STARTED", "STATE_SNAPSHOT", "CUSTOM", "RUN_FINISHED"]


def types(answer: Answer) -> list[str]:
    return [event["type"] for event in answer["events"]]


def check_clean(answer: Answer, expected: list[str]) -> None:
    """The client took every event as it is, in the order of the contract, and said nothing."""
    assert (answer["complaints"], answer["faults"], answer["error"], answer["broken"]) == ([], [], None, None)
    assert types(answer) == answer["seen"]
    # Several changes of the state may be told in one delta or in several.
    shown = [
        kind
        for kind, before in zip(types(answer), ["", *types(answer)], strict=False)
        if (kind, before) != ("STATE_DELTA", "STATE_DELTA")
    ]
    assert shown == expected
    assert all(value is not None for event in answer["events"] for value in event.values())


def check_result(answer: Answer, kind: str) -> dict[str, Any]:
    """The run ends well: one object in the custom event, the terminal event and the client's result."""
    custom, finished = answer["events"][-2:]
    assert custom == {"type": "CUSTOM", "name": "plurnk.action.result", "value": answer["result"]}
    assert set(finished) == {"type", "threadId", "runId", "result", "outcome"}
    assert (finished["result"], finished["outcome"]) == (answer["result"], {"type": "success"})
    assert set(answer["result"]) == {"kind", "ok", "result"}
    assert (answer["result"]["kind"], answer["result"]["ok"]) == (kind, True)
    return answer["result"]["result"]


async def attach(client: OfficialClient, workspace: str, definition: dict[str, Any]) -> Answer:
    action = {"kind": "workspace.mcp.attach", "server": definition}
    return await client.run(workspace, action, thread=f"attach-{workspace}-{definition['name']}")


@pytest.mark.spec("agui", "actions")
async def test_attach_replace_reconnect_detach(client: OfficialClient, workspace: str, sdk_url: str) -> None:
    definition = http_definition("notes", sdk_url, read=["echo"])
    thread = f"manage-{workspace}"
    answers: list[Answer] = []
    for kind, params, status in (
        ("attach", {"server": definition}, 201),
        ("replace", {"server": {**definition, "tools": ["echo"]}}, 200),
        ("reconnect", {"name": "notes"}, 200),
    ):
        action = {"kind": f"workspace.mcp.{kind}", **params}
        answer = await client.run(workspace, action, thread=thread, state={"mine": [1, 2]})
        # The same server with the same catalog: a reconnection changes nothing that the state shows.
        unchanged = {"STATE_DELTA"} if kind == "reconnect" else set[str]()
        check_clean(answer, [event for event in ATTACH_EVENTS if event not in unchanged])
        result = check_result(answer, f"workspace.mcp.{kind}")
        assert (result["status"], result["server"]["state"]) == (status, "connected")
        assert answer["events"][2] == {"type": "STEP_STARTED", "stepName": "prepare:notes"}
        assert answer["state"]["mine"] == [1, 2]
        assert answer["state"]["plurnk"]["servers"]["notes"] | {"revision": ""} == {
            "name": "notes",
            "source": "workspace",
            "transport": "http",
            "state": "connected",
            "revision": "",
            "tools": len(result["server"]["tools"]),
            "resources": 1,
            "prompts": 1,
        }
        answers.append(answer)
    assert len({answer["result"]["result"]["server"]["revision"] for answer in answers}) == 2
    started = answers[0]["events"][0]
    assert set(started) == {"type", "threadId", "runId", "protocolVersion"}
    assert (started["threadId"], started["protocolVersion"]) == (thread, "1.0")
    snapshot = answers[0]["events"][1]["snapshot"]
    assert set(snapshot) == {"mine", "plurnk"}
    assert set(snapshot["plurnk"]) == {"workspace", "rev", "servers", "pending", "operations", "interactions"}

    answer = await client.run(workspace, {"kind": "workspace.mcp.detach", "name": "notes"}, thread=thread)
    check_clean(answer, ["RUN_STARTED", "STATE_SNAPSHOT", "STATE_DELTA", "CUSTOM", "RUN_FINISHED"])
    assert check_result(answer, "workspace.mcp.detach") == {"status": 200, "name": "notes", "detached": True}
    assert answer["state"]["plurnk"]["servers"] == {}


@pytest.mark.spec("agui", "problems")
async def test_a_problem_ends_in_a_finished_run(client: OfficialClient, workspace: str) -> None:
    answer = await attach(client, workspace, scripted_definition("old", "old"))
    check_clean(
        answer, ["RUN_STARTED", "STATE_SNAPSHOT", "STEP_STARTED", "STEP_FINISHED", "CUSTOM", "RUN_FINISHED"]
    )
    value = answer["result"]
    assert set(value) == {"kind", "ok", "problem"}
    assert (value["kind"], value["ok"]) == ("workspace.mcp.attach", False)
    problem = value["problem"]
    assert {name: problem[name] for name in problem if name not in {"title", "detail"}} == {
        "type": "https://problems.plurnk.dev/mcp/management/protocol-revision-unsupported",
        "status": 502,
        "code": "protocol-revision-unsupported",
        "retryable": False,
        "stage": "management",
        "server": "old",
        "transport": "stdio",
        "requiredRevision": "2026-07-28",
        "requiredMethod": "server/discover",
        "supportedRevisions": ["2025-11-25"],
    }
    unknown = await client.run(workspace, {"kind": "workspace.mcp.nothing"}, thread=f"unknown-{workspace}")
    check_clean(unknown, PLAIN_EVENTS)
    assert unknown["result"]["problem"]["code"] == "action-unknown"


@pytest.mark.spec("agui", "calls")
async def test_a_call_streams_itself_its_progress_and_its_result(
    client: OfficialClient, workspace: str
) -> None:
    await attach(client, workspace, stdio_definition("notes", read=["count"]))
    action = {"kind": "workspace.mcp.call", "server": "notes", "tool": "count", "arguments": {"steps": 2}}
    answer = await client.run(workspace, action, thread=f"call-{workspace}")
    assert (answer["complaints"], answer["faults"], answer["error"]) == ([], [], None)
    work = [event for event in answer["events"] if event["type"] != "STATE_DELTA"]
    assert [event["type"] for event in work] == [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "ACTIVITY_SNAPSHOT",
        "ACTIVITY_DELTA",
        "TOOL_CALL_RESULT",
        "CUSTOM",
        "RUN_FINISHED",
    ]
    start, arguments, _, snapshot, _, result = work[2:8]
    plurnk = start["metadata"]["plurnk"]
    assert (start["toolCallName"], plurnk["server"], plurnk["tool"]) == ("count", "notes", "count")
    assert arguments["delta"] == '{"steps":2}'
    assert snapshot["activityType"] == "plurnk.mcp.progress"
    assert (result["content"], result["toolCallId"], result["role"]) == (
        "counted to 2",
        start["toolCallId"],
        "tool",
    )
    value = check_result(answer, "workspace.mcp.call")
    assert (value["operation"], value["toolCallId"]) == (plurnk["operation"], start["toolCallId"])
    activities = [message for message in answer["messages"] if message["role"] == "activity"]
    assert activities[0]["content"]["progress"] == 2
    assert answer["state"]["plurnk"]["operations"] == {}


@pytest.mark.spec("agui", "calls", "policy")
@pytest.mark.parametrize("decision", ["accept", "reject"])
async def test_a_proposal_interrupt_is_resolved(
    client: OfficialClient, workspace: str, decision: str
) -> None:
    await attach(client, workspace, stdio_definition("notes"))
    thread = f"proposal-{workspace}"
    action = {"kind": "workspace.mcp.call", "server": "notes", "tool": "echo", "arguments": {"text": "hi"}}
    asked = await client.run(workspace, action, thread=thread)
    assert (asked["complaints"], asked["faults"], asked["error"], asked["result"]) == ([], [], None, None)
    assert "CUSTOM" not in types(asked)
    finished = asked["events"][-1]
    assert set(finished) == {"type", "threadId", "runId", "outcome"}
    [interrupt] = finished["outcome"]["interrupts"]
    assert asked["pending"] == [interrupt]
    assert set(interrupt) == {
        "id",
        "reason",
        "toolCallId",
        "message",
        "responseSchema",
        "expiresAt",
        "metadata",
    }
    assert interrupt["reason"] == "tool_call"
    operation = interrupt["metadata"]["plurnk"]["operation"]
    assert asked["state"]["plurnk"]["operations"][operation]["state"] == "input_required"
    assert interrupt["id"] in asked["state"]["plurnk"]["interactions"]

    entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"decision": decision}}
    answer = await client.run(workspace, thread=thread, resume=[entry])
    assert (answer["complaints"], answer["faults"], answer["error"]) == ([], [], None)
    value = check_result(answer, "workspace.mcp.call")
    assert (value["status"], value["operation"]) == (200, operation)
    assert (value.get("rejected"), value.get("isError")) == (
        (True, None) if decision == "reject" else (None, False)
    )
    assert answer["pending"] == []
    assert (answer["state"]["plurnk"]["operations"], answer["state"]["plurnk"]["interactions"]) == ({}, {})
    if decision == "accept":
        results = [event for event in answer["events"] if event["type"] == "TOOL_CALL_RESULT"]
        assert [event["toolCallId"] for event in results] == [interrupt["toolCallId"]]


@pytest.mark.spec("agui")
async def test_a_resume_that_is_not_consumed_keeps_the_question(
    client: OfficialClient, workspace: str
) -> None:
    await attach(client, workspace, stdio_definition("notes"))
    thread = f"unconsumed-{workspace}"
    action = {"kind": "workspace.mcp.call", "server": "notes", "tool": "echo", "arguments": {"text": "hi"}}
    [interrupt] = (await client.run(workspace, action, thread=thread))["pending"]
    wrong = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"decision": "perhaps"}}
    refused = await client.run(workspace, thread=thread, resume=[wrong])
    assert refused["events"][-1]["type"] == "RUN_ERROR"
    assert refused["events"][-1]["code"] == "answer-invalid"
    assert refused["pending"] == [interrupt]
    right = {"interruptId": interrupt["id"], "status": "cancelled"}
    settled = await client.run(workspace, thread=thread, resume=[right])
    assert check_result(settled, "workspace.mcp.call")["rejected"] is True


@pytest.mark.spec("agui", "actions")
async def test_complete_list_and_tools(client: OfficialClient, workspace: str, sdk_url: str) -> None:
    await attach(client, workspace, http_definition("notes", sdk_url))
    action = {
        "kind": "workspace.mcp.complete",
        "server": "notes",
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "name", "value": "g"},
    }
    answer = await client.run(workspace, action, thread=f"complete-{workspace}")
    assert (answer["complaints"], answer["faults"], answer["error"]) == ([], [], None)
    completion = check_result(answer, "workspace.mcp.complete")["completion"]
    assert completion == {"values": ["grace"], "total": 1, "hasMore": False}
    for kind in ("workspace.mcp.list", "workspace.mcp.tools"):
        answer = await client.run(workspace, {"kind": kind}, thread=f"{kind}-{workspace}")
        check_clean(answer, PLAIN_EVENTS)
        check_result(answer, kind)


@pytest.mark.spec("agui", "security")
async def test_a_run_that_is_refused_before_it_begins_has_a_status(
    client: OfficialClient, daemon: Daemon, workspace: str
) -> None:
    refused = await client.run(
        workspace, {"kind": "workspace.mcp.list"}, thread=f"bad-{workspace}", token="wrong"
    )
    assert (refused["status"], refused["events"]) == (401, [])
    nameless = await client.run(".", {"kind": "workspace.mcp.list"}, thread=f"nameless-{workspace}")
    assert nameless["status"] == 400


@pytest.mark.spec("shutdown", "agui")
async def test_the_client_survives_the_shutdown_of_the_daemon(
    client_directory: Path, tmp_path: Path, workspace: str
) -> None:
    daemon = await Daemon(tmp_path / "daemon").start()
    try:
        async with official_client(client_directory, daemon) as client:
            thread = f"watch-{workspace}"
            number = await client.begin(workspace, {"kind": "workspace.mcp.watch"}, thread=thread)
            await client.started(thread)
            assert await daemon.stop() == 0
            answer = await client.answer_to(number)
            assert (answer["error"], answer["broken"], answer["complaints"], answer["faults"]) == (
                None,
                None,
                [],
                [],
            )
            assert answer["events"][-1]["outcome"] == {"type": "cancelled"}
            assert await client.is_alive()
    finally:
        daemon.close()
