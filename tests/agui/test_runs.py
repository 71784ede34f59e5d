"""AG-UI runs through the whole door: their Problems, their cancellation, watching."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from app.agui import runs
from app.agui.run_input import parse_run_input
from app.core.principal import Principal
from app.core.problem import Outcome
from app.doors.asgi import Message
from tests.support.agui_events import JsonEvent
from tests.support.agui_runs import LIST, answered_run, code, types
from tests.support.doors_house import call, doors_house, run_input, text_result
from tests.support.eventually import eventually

pytestmark = pytest.mark.spec("agui")

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
        host, workspace = doors.app.serves, doors.house.workspace
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
    [
        (call(), "operation-cancelled"),
        ({"kind": "workspace.mcp.read", "uri": "project:///prompts/x"}, "shutting-down"),
        ({"kind": "workspace.mcp.watch"}, "shutting-down"),
    ],
    ids=["call", "read", "watch"],
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
                if action["kind"] != "workspace.mcp.watch":
                    await doors.peer.next_request()
                await doors.streams.end_all()
        async with doors.client() as client:
            late = await client.post("/", json=run_input(LIST))
    assert (code(events), events[-1]["outcome"]) == (expected, {"type": "cancelled"})
    if action["kind"] != "workspace.mcp.watch":
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
