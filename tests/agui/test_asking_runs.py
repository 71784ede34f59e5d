"""Runs of operations whose peer requires input, event by event, as SPEC §agui gives them."""

from typing import Any

import anyio
import pytest

from app.core.answers import Progress
from tests.support.agui_events import JsonEvent
from tests.support.agui_runs import LIST, answered_run, code, finished, interrupts_of, types
from tests.support.doors_house import DoorsHouse, call, doors_house, text_result
from tests.support.eliciting import ENVIRONMENT, PAGE, STATE, asks, form, link

pytestmark = [pytest.mark.spec("agui"), pytest.mark.spec("calls")]

QUESTION = "Which environment should be deployed?"
ENTRY = {"server": "project", "tool": "echo", "state": "input_required"}


async def told(doors: DoorsHouse, *progress: Progress, result: Any, **members: Any) -> list[JsonEvent]:
    """Return the events of a run whose one request reports progress and is answered with the result."""
    events: list[JsonEvent] = []

    async def run() -> None:
        events.extend(await doors.run(**members))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        request = await doors.peer.next_request()
        assert request.on_progress is not None
        for each in progress:
            request.on_progress(each)
        request.result(result)
    return events


async def test_a_call_with_progress_and_a_question_and_its_answer() -> None:
    async with doors_house() as doors:
        await doors.run(LIST)
        asked = await told(
            doors,
            Progress(0, 3, "starting"),
            Progress(1, 3),
            action=call(svc="api"),
            result=asks(state=STATE, q=form(QUESTION)),
        )
        (interrupt,) = interrupts_of(asked)
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"env": "staging"}}
        ended = await told(
            doors,
            Progress(3, 3, "finishing"),
            resume=[entry],
            runId="run-2",
            result=text_result("deployed to staging"),
        )
        first, again = doors.peer.requests
    call_id, operation = asked[2]["toolCallId"], asked[2]["metadata"]["plurnk"]["operation"]
    rev = asked[1]["snapshot"]["plurnk"]["rev"]
    activity = {"messageId": f"progress-{call_id}", "activityType": "plurnk.mcp.progress"}
    interaction = {
        "operation": operation,
        "threadId": "thread-1",
        "server": "project",
        "tool": "echo",
        "message": QUESTION,
        "expiresAt": interrupt["expiresAt"],
    }
    assert asked[2:] == [
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
        {"type": "ACTIVITY_DELTA", **activity, "patch": [{"op": "replace", "path": "/progress", "value": 1}]},
        {
            "type": "STATE_DELTA",
            "delta": [
                {"op": "add", "path": f"/plurnk/operations/{operation}", "value": ENTRY},
                {"op": "add", "path": f"/plurnk/interactions/{interrupt['id']}", "value": interaction},
                # The own operation that began and progressed without being shown advanced it too.
                {"op": "replace", "path": "/plurnk/rev", "value": rev + 3},
            ],
        },
        {
            "type": "RUN_FINISHED",
            "threadId": "thread-1",
            "runId": "run-1",
            "outcome": {
                "type": "interrupt",
                "interrupts": [
                    {
                        "id": interrupt["id"],
                        "reason": "input_required",
                        "toolCallId": call_id,
                        "message": QUESTION,
                        "responseSchema": ENVIRONMENT,
                        "expiresAt": interrupt["expiresAt"],
                        "metadata": {
                            "plurnk": {
                                "operation": operation,
                                "server": "project",
                                "tool": "echo",
                                "method": "elicitation/create",
                                "mode": "form",
                            }
                        },
                    }
                ],
            },
        },
    ]
    result = {
        "status": 200,
        "operation": operation,
        "toolCallId": call_id,
        "isError": False,
        "content": [{"type": "text", "text": "deployed to staging"}],
    }
    value = {"kind": "workspace.mcp.call", "ok": True, "result": result}
    custom, end = finished(value)
    plurnk = ended[1]["snapshot"]["plurnk"]
    assert (plurnk["operations"], plurnk["interactions"]) == (
        {operation: ENTRY},
        {interrupt["id"]: interaction},
    )
    last = ended[-3]["delta"][-1]["value"]
    assert last in {rev + 5, rev + 6}  # The progress shows now or not any more.
    assert ended[2:] == [
        {
            # The question goes as soon as it is answered, not only when the call ends.
            "type": "STATE_DELTA",
            "delta": [
                {"op": "remove", "path": f"/plurnk/interactions/{interrupt['id']}"},
                {"op": "replace", "path": "/plurnk/rev", "value": rev + 4},
            ],
        },
        {
            "type": "ACTIVITY_SNAPSHOT",
            **activity,
            "content": {"toolCallId": call_id, "progress": 3, "total": 3, "message": "finishing"},
        },
        {
            "type": "TOOL_CALL_RESULT",
            "messageId": f"result-{call_id}",
            "toolCallId": call_id,
            "role": "tool",
            "content": "deployed to staging",
            "metadata": {"plurnk": {"isError": False}},
        },
        {
            "type": "STATE_DELTA",
            "delta": [
                {"op": "remove", "path": f"/plurnk/operations/{operation}"},
                {"op": "replace", "path": "/plurnk/rev", "value": last},
            ],
        },
        custom,
        {**end, "runId": "run-2"},
    ]
    assert again.params == {
        **first.params,
        "inputResponses": {"q": {"action": "accept", "content": {"env": "staging"}}},
        "requestState": STATE,
    }
    assert not any(word in str(asked + ended) for word in ("requestState", STATE, repr(STATE)[1:-1]))


async def test_a_form_and_a_page_are_two_interrupts_of_one_run_and_then_there_is_another_round() -> None:
    async with doors_house() as doors:
        asked = await answered_run(doors, call(), asks(q=form(), r=link()))
        one, two = interrupts_of(asked)
        assert two["metadata"]["plurnk"]["url"] == PAGE
        assert two["metadata"]["plurnk"]["host"] == "pay.example"
        entries: list[Any] = [
            {"interruptId": one["id"], "status": "cancelled", "metadata": {"plurnk": {"action": "decline"}}},
            {"interruptId": two["id"], "status": "resolved"},
        ]
        partly = await doors.run(resume=entries[:1])
        assert (partly[-1]["type"], partly[-1]["code"]) == ("RUN_ERROR", "resume-incomplete")
        assert interrupts_of(await doors.run()) == [one, two]
        again = await answered_run(doors, None, asks(q=form()), resume=entries, threadId="thread-2")
        (three,) = interrupts_of(again)
        assert types(again) == ["RUN_STARTED", "STATE_SNAPSHOT", "STATE_DELTA", "RUN_FINISHED"]
        assert [each["op"] for each in again[2]["delta"]] == ["remove", "remove", "add", "add", "replace"]
        # Whoever answers what was answered already is told what is open now.
        assert interrupts_of(await doors.run(resume=entries)) == [three]
        assert interrupts_of(await doors.run()) == [three]
        other = [{**entries[0], "metadata": {}}, entries[1]]
        assert code(await doors.run(resume=other)) == "interrupt-conflict"
        last = [{"interruptId": three["id"], "status": "cancelled"}]
        ended = await answered_run(doors, None, text_result("done"), resume=last)
    assert ended[-1]["outcome"] == {"type": "success"}
    responses: list[Any] = [each.params.get("inputResponses") for each in doors.peer.requests]
    assert responses == [
        None,
        {"q": {"action": "decline"}, "r": {"action": "accept"}},
        {"q": {"action": "cancel"}},
    ]


async def test_a_read_that_asked_is_a_read_again_when_its_answer_is_repeated() -> None:
    async with doors_house() as doors:
        action = {"kind": "workspace.mcp.read", "uri": "project:///prompts/greet"}
        (interrupt,) = interrupts_of(await answered_run(doors, action, asks(q=form())))
        assert "toolCallId" not in interrupt
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"env": "prod"}}
        ended = await answered_run(doors, None, {"messages": []}, resume=[entry])
        again = await doors.run(resume=[entry])
    assert ended[-1]["result"] == {"kind": "workspace.mcp.read", "ok": True, "result": {"messages": []}}
    assert again[-1] == ended[-1]


async def test_a_question_of_another_workspace_is_unknown_whatever_the_thread() -> None:
    async with doors_house() as doors:
        (interrupt,) = interrupts_of(await answered_run(doors, call(), asks(q=form())))
        entry = {"interruptId": interrupt["id"], "status": "cancelled"}
        assert code(await doors.run(resume=[entry], workspace="other")) == "interrupt-not-found"
        assert code(await doors.run(workspace="other")) == "action-required"


async def test_a_run_ends_cancelled_where_its_operation_is_cancelled_between_two_rounds() -> None:
    async with doors_house() as doors:
        (interrupt,) = interrupts_of(await answered_run(doors, call(), asks(q=form())))
        operation = interrupt["metadata"]["plurnk"]["operation"]
        await doors.run({"kind": "workspace.mcp.cancel", "operation": operation})
        entry = {"interruptId": interrupt["id"], "status": "cancelled"}
        ended = await doors.run(resume=[entry])
        assert (code(ended), ended[-1]["outcome"]) == ("operation-cancelled", {"type": "cancelled"})
        assert code(await doors.run()) == "action-required"


async def test_rest_is_told_what_is_open_still_and_then_the_result() -> None:
    async with doors_house() as doors:
        await doors.run(LIST)
        doors.peer.automatic = lambda request: request.result(
            text_result("done") if "inputResponses" in request.params else asks(q=form(), r=link())
        )
        asked = await doors.act(call())
        assert asked.status_code == 202
        one, two = (each["id"] for each in asked.json()["interrupts"])
        operation = asked.json()["operation"]
        path = "/v1/workspaces/w/interactions/"
        unfit = await doors.post(path + one, {"status": "resolved", "payload": {"env": "moon"}})
        assert (unfit.status_code, unfit.json()["code"]) == (400, "answer-invalid")
        first = await doors.post(path + one, {"status": "resolved", "payload": {"env": "prod"}})
        assert (first.status_code, [each["id"] for each in first.json()["interrupts"]]) == (202, [two])
        stands = await doors.get(f"/v1/workspaces/w/operations/{operation}")
        assert (stands.status_code, stands.json()) == (202, first.json())
        decline = {"status": "cancelled", "metadata": {"plurnk": {"action": "decline"}}}
        last = await doors.post(path + two, decline)
        assert (last.status_code, last.json()["content"]) == (200, [{"type": "text", "text": "done"}])
        again = await doors.get(f"/v1/workspaces/w/operations/{operation}")
        assert again.json() == last.json()
        late = await doors.post(path + two, {"status": "cancelled"})
        assert (late.status_code, late.json()["code"]) == (409, "interrupt-conflict")
    assert doors.peer.requests[1].params["inputResponses"] == {
        "q": {"action": "accept", "content": {"env": "prod"}},
        "r": {"action": "decline"},
    }
