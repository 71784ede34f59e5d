"""AG-UI runs through the whole door, event by event and member by member; the peers answer when told to."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from app.agui import runs
from app.agui.run_input import parse_run_input
from app.core.answers import Progress
from app.core.principal import Principal
from app.core.problem import Outcome, Problem, Stage
from app.core.problems import ProtocolRevisionUnsupported
from app.doors.asgi import Message
from tests.support.agui_events import JsonEvent
from tests.support.doors_house import (
    DEFINITION,
    PROJECT,
    DoorsHouse,
    call,
    doors_house,
    run_input,
    text_result,
)
from tests.support.eventually import eventually

pytestmark = pytest.mark.spec("agui")

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


# The examples of the protocol page, whole


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


# Interrupts


async def test_a_run_that_asks_for_nothing_ends_with_what_waits_on_its_thread() -> None:
    async with doors_house() as doors:
        asked = interrupts_of(await doors.run(call("deploy")))
        other = interrupts_of(await doors.run(call("deploy"), threadId="thread-2"))
        await doors.run(LIST)
        assert interrupts_of(await doors.run()) == asked
        assert interrupts_of(await doors.run(threadId="thread-2")) == other
        assert code(await doors.run(threadId="thread-3")) == "action-required"


async def test_a_run_that_asks_for_nothing_reminds_of_one_operation_at_a_time() -> None:
    async with doors_house() as doors:
        first = interrupts_of(await doors.run(call("deploy")))
        second = interrupts_of(await doors.run(call("deploy")))
        assert interrupts_of(await doors.run()) == first
        await doors.run(resume=[{"interruptId": first[0]["id"], "status": "cancelled"}])
        assert interrupts_of(await doors.run()) == second


@pytest.mark.parametrize(
    "payload, expected",
    [({"decision": "maybe"}, "answer-invalid"), (None, "answer-invalid"), ({}, "answer-invalid")],
)
async def test_a_resume_that_is_not_consumed_ends_in_a_run_error(payload: Any, expected: str) -> None:
    async with doors_house() as doors:
        (interrupt,) = interrupts_of(await doors.run(call("deploy")))
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
        events = await doors.run(resume=[entry])
        still = interrupts_of(await doors.run())
    assert types(events) == ["RUN_STARTED", "STATE_SNAPSHOT", "CUSTOM", "RUN_ERROR"]
    value, error = events[-2]["value"], events[-1]
    assert (value["kind"], value["ok"], value["problem"]["code"]) == ("workspace.mcp.call", False, expected)
    assert (error["code"], error["metadata"]) == (expected, {"plurnk": {"problem": value["problem"]}})
    assert value["problem"]["stage"] == "operation"
    assert [each["id"] for each in still] == [interrupt["id"]]


async def test_a_resume_whose_question_is_gone_ends_so_that_clients_forget_it() -> None:
    async with doors_house() as doors:
        events = await doors.run(resume=[{"interruptId": "int-unknown", "status": "cancelled"}])
    assert types(events)[-2:] == ["CUSTOM", "RUN_FINISHED"]
    assert code(events) == "interrupt-not-found"


async def test_an_action_and_a_resume_are_too_much_and_nothing_is_consumed() -> None:
    async with doors_house() as doors:
        (interrupt,) = interrupts_of(await doors.run(call("deploy")))
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"decision": "accept"}}
        events = await doors.run(LIST, resume=[entry])
        assert interrupts_of(await doors.run()) == [interrupt]
    assert (events[-1]["type"], events[-1]["code"]) == ("RUN_ERROR", "parameter-invalid")


# Problems


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    "action, kind, expected, stage",
    [
        ("text", None, "parameter-invalid", "management"),
        ({}, None, "parameter-required", "management"),
        ({"kind": 7}, None, "parameter-invalid", "management"),
        ({"kind": "workspace.mcp.fly"}, "workspace.mcp.fly", "action-unknown", "management"),
        ({"kind": "x" * 500}, "x" * 128, "action-unknown", "management"),
        ({"kind": "workspace.mcp.detach"}, "workspace.mcp.detach", "parameter-required", "management"),
        ({"kind": "workspace.mcp.list", "more": 1}, "workspace.mcp.list", "parameter-invalid", "management"),
        (
            {"kind": "workspace.mcp.call", "server": "p"},
            "workspace.mcp.call",
            "parameter-required",
            "operation",
        ),
    ],
)
async def test_everything_about_the_action_is_in_the_stream(
    action: Any, kind: str | None, expected: str, stage: str
) -> None:
    async with doors_house() as doors:
        events = await doors.run(action)
    value = events[-1]["result"]
    assert (value.get("kind"), value["problem"]["code"], value["problem"]["stage"]) == (kind, expected, stage)
    assert events[-1]["outcome"] == {"type": "success"}


@pytest.mark.spec("problems")
async def test_a_bug_of_ours_ends_in_a_run_error_that_tells_only_a_trace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret-canary")

    monkeypatch.setattr(runs, "perform", fail)
    async with doors_house() as doors:
        events = await doors.run(LIST)
    assert types(events) == ["RUN_STARTED", "STATE_SNAPSHOT", "CUSTOM", "RUN_ERROR"]
    assert events[-1]["code"] == "internal"
    assert set(events[-1]["metadata"]["plurnk"]["problem"]) >= {"trace"}
    assert "secret-canary" not in str(events)


@pytest.mark.spec("limits")
async def test_a_result_too_large_for_one_event_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "EVENT_MAX", 6000)
    async with doors_house() as doors:
        events = await answered_run(doors, call(), text_result("x" * 4000))
    problem = events[-1]["result"]["problem"]
    assert (problem["code"], problem["limit"], problem["outcome"]) == ("result-too-large", 6000, "executed")
    assert "TOOL_CALL_RESULT" in types(events)


@pytest.mark.spec("limits")
async def test_a_state_too_large_for_one_event_is_refused_before_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runs, "EVENT_MAX", 6000)
    async with doors_house() as doors, doors.client() as client:
        answer = await client.post("/", json=run_input(LIST, state={"app": "x" * 7000}))
    assert (answer.status_code, answer.json()["code"]) == (422, "input-malformed")
    assert answer.json()["errors"][0]["pointer"] == "/state"


# Cancellation


async def test_an_operation_that_is_cancelled_ends_its_run_as_cancelled() -> None:
    async with doors_house() as doors:
        await doors.run(LIST)
        events: list[JsonEvent] = []

        async def run() -> None:
            events.extend(await doors.run(call()))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            request = await doors.peer.next_request()
            (operation,) = doors.house.state("operations")
            cancelled = await doors.run({"kind": "workspace.mcp.cancel", "operation": operation})
            assert cancelled[-1]["result"]["result"]["cancelled"] is True
            assert request.is_cancelled
    assert (code(events), events[-1]["outcome"]) == ("operation-cancelled", {"type": "cancelled"})


async def test_a_client_that_leaves_cancels_its_run() -> None:
    async with doors_house() as doors:
        await doors.run(LIST)
        async with doors.client() as client, client.stream("POST", "/", json=run_input(call())) as answer:
            assert answer.status_code == 200
            request = await doors.peer.next_request()
        await eventually(lambda: request.is_cancelled and not doors.house.state("operations"))
        assert not doors.house.workspace.state.has_listeners
        assert doors.house.leases("project") == ()


async def test_a_client_that_left_is_sent_no_end() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async with doors_house() as doors:
        host, workspace = doors.app.state.host, doors.house.workspace
        asked = parse_run_input(run_input({"kind": "workspace.mcp.watch"}))
        with anyio.fail_after(5):
            await runs.AguiRun(host, Principal(), workspace, asked).answer(doors.streams, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert not workspace.state.has_listeners


async def test_an_operation_that_waits_outlives_its_client() -> None:
    async with doors_house() as doors:
        await doors.run(call("deploy"))
        assert len(doors.house.board.open_interrupts()) == 1
        assert not doors.house.workspace.state.has_listeners


@pytest.mark.spec("shutdown")
@pytest.mark.parametrize(
    "action, expected",
    [(call(), "operation-cancelled"), ({"kind": "workspace.mcp.watch"}, "shutting-down")],
    ids=["call", "watch"],
)
async def test_shutdown_ends_every_run_as_cancelled(action: Any, expected: str) -> None:
    async with doors_house() as doors:
        await doors.run(LIST)
        events: list[JsonEvent] = []

        async def run() -> None:
            events.extend(await doors.run(action))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await eventually(lambda: doors.house.workspace.is_watched)
                if action["kind"] == "workspace.mcp.call":
                    await doors.peer.next_request()
                await doors.streams.end_all()
        async with doors.client() as client:
            late = await client.post("/", json=run_input(LIST))
    assert (code(events), events[-1]["outcome"]) == (expected, {"type": "cancelled"})
    if expected == "operation-cancelled":
        assert events[-1]["result"]["problem"]["outcome"] == Outcome.UNKNOWN
    assert (late.status_code, late.json()["code"], late.headers["retry-after"]) == (503, "shutting-down", "1")


# Watching


async def test_a_watch_shows_what_others_do_as_it_happens() -> None:
    async with doors_house() as doors:
        await doors.run(LIST)
        async with doors.client() as client:
            watch = {"kind": "workspace.mcp.watch"}
            async with client.stream("POST", "/", json=run_input(watch)) as answer:
                lines = answer.aiter_lines()
                await doors.run(call("deploy"), threadId="other")
                with anyio.fail_after(5):
                    shown = [line async for line in _until(lines, "interactions/int-")]
    assert any("RUN_STARTED" in line for line in shown)


async def _until(lines: AsyncIterator[str], text: str) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if "STATE_DELTA" in line and text in line:
            return


async def test_a_watch_of_seconds_ends_by_itself() -> None:
    async with doors_house() as doors:
        events = await doors.run({"kind": "workspace.mcp.watch", "seconds": 0.01})
    assert types(events)[-2:] == ["CUSTOM", "RUN_FINISHED"]
