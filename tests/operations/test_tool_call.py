"""Tool calls: found, validated, proposed, sent once, and what comes of every answer."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import orjson
import pytest

from app.core.answers import AnswerLost, Progress, RemoteError, RequestNotSent, Result
from app.core.catalog import ServerCatalog
from app.core.events import OperationProgressed, ToolCallEnded, ToolCallStarted
from app.core.interrupts import ResumeEntry
from app.core.json_value import JsonObject
from app.core.operation_problems import (
    ArgumentsInvalid,
    RemoteErrorAnswered,
    ToolCallFailed,
    ToolNotFound,
    ToolResultInvalid,
)
from app.core.problem import Outcome, Problem
from app.core.problems import (
    ServerChanged,
    ServerNotConnected,
    ServerNotFound,
    ServerUnavailable,
)
from app.core.proposals import DECISION_SCHEMA
from app.operations.board import Settled, Waiting
from app.operations.tool_call import call
from tests.support.gated_connection import catalog, tool_entry
from tests.support.operations_house import OperationsHouse, operations_house

ECHO_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "n": {"type": "integer", "x-mcp-header": "N"}},
    "required": ["text"],
}
DEPLOY_SCHEMA = {"type": "object", "properties": {"svc": {"type": "string"}}, "required": ["svc"]}
ROWS = {"type": "object", "required": ["rows"]}
CATALOG = catalog(
    [
        tool_entry("echo", inputSchema=ECHO_SCHEMA),
        tool_entry("deploy", inputSchema=DEPLOY_SCHEMA, annotations={"readOnlyHint": True}),
        tool_entry("table", outputSchema=ROWS),
    ]
)
READ = {"p": {"read": ["echo", "table"]}}
TEXT: Any = {"type": "text", "text": "hi"}


def peers(**settings: str) -> AbstractAsyncContextManager[OperationsHouse]:
    return operations_house({"p": CATALOG}, definitions=READ, environment=settings)


async def begin(
    house: OperationsHouse, tool: str = "echo", arguments: JsonObject | None = None, **options: Any
) -> Settled | Waiting:
    given: JsonObject = {"text": "hi"} if arguments is None else arguments
    return await call(house.board, "p", tool, given, observe=house.events.append, **options)


async def ends_in(
    house: OperationsHouse, expected: type[Problem], answer: Any, tool: str = "echo"
) -> Problem:
    """Answer the one request of a call so, and return the Problem it ends in."""
    problems: list[Problem] = []

    async def caller() -> None:
        try:
            await begin(house, tool)
        except Problem as problem:
            problems.append(problem)

    async with anyio.create_task_group() as group:
        group.start_soon(caller)
        request = await house.peer.next_request()
        request.result(answer) if isinstance(answer, dict) else request.answer(answer)
    (problem,) = problems
    assert type(problem) is expected
    return problem


@pytest.mark.spec("calls")
async def test_a_read_tool_is_called_at_once_and_its_result_comes_back_as_it_was_sent() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        ended: list[Settled | Waiting] = []

        async def caller() -> None:
            ended.append(await begin(house, arguments={"text": "hi", "n": 3}))

        group.start_soon(caller)
        await anyio.wait_all_tasks_blocked()
        request = await house.peer.next_request()
        assert (request.method, request.params) == (
            "tools/call",
            {"name": "echo", "arguments": {"text": "hi", "n": 3}},
        )
        assert request.input_schema is not None
        assert orjson.loads(request.input_schema) == ECHO_SCHEMA
        (operation,) = house.state("operations")
        assert house.state("operations")[operation] == {"server": "p", "tool": "echo", "state": "working"}
        assert house.leases() == (operation,)
        assert request.on_progress is not None
        request.on_progress(Progress(0.0, 3.0, "starting"))
        request.result({"resultType": "complete", "content": [TEXT], "_meta": {}})
        await anyio.wait_all_tasks_blocked()
        started = house.events[0]
        assert isinstance(started, ToolCallStarted)
        call_id = started.tool_call_id
        assert call_id == f"call-{operation.removeprefix('op-')}"
        assert ended == [
            Settled(
                operation,
                "workspace.mcp.call",
                {
                    "status": 200,
                    "operation": operation,
                    "toolCallId": call_id,
                    "isError": False,
                    "content": [TEXT],
                },
            )
        ]
        assert house.events == [
            ToolCallStarted(operation, call_id, "p", "echo", {"text": "hi", "n": 3}),
            OperationProgressed(operation, call_id, Progress(0.0, 3.0, "starting")),
            ToolCallEnded(operation, call_id, is_error=False, content=[TEXT]),
        ]
        assert (operation.startswith("op-"), call_id.startswith("call-")) == (True, True)
        assert len(operation) > 20
        assert house.state("operations") == {}
        assert house.leases() == ()


@pytest.mark.spec("calls")
async def test_a_tools_own_error_is_a_completed_call_without_a_schema_check() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        ended: list[Any] = []

        async def caller() -> None:
            ended.append(await begin(house, "table"))

        group.start_soon(caller)
        request = await house.peer.next_request()
        request.result({"isError": True, "content": [TEXT], "structuredContent": {"err": 1}})
        await anyio.wait_all_tasks_blocked()
        shown = ended[0].result
        assert (shown["isError"], shown["content"], shown["structuredContent"]) == (True, [TEXT], {"err": 1})


@pytest.mark.spec("problems")
async def test_arguments_that_break_the_schema_send_nothing_and_leave_nothing() -> None:
    async with peers() as house:
        with pytest.raises(ArgumentsInvalid) as raised:
            await begin(house, arguments={"n": "three"})
        errors: Any = raised.value.facts["errors"]
        assert sorted(error["pointer"] for error in errors) == ["/n", "/text"]
        assert raised.value.outcome is Outcome.NOT_SENT
        assert (house.peer.requests, house.events, house.state("operations"), house.leases()) == (
            [],
            [],
            {},
            (),
        )


@pytest.mark.spec("calls")
async def test_arguments_reach_the_peer_unchanged() -> None:
    odd: JsonObject = {"text": "é", "extra": None, "deep": [{"a": 1.0, "b": []}]}
    async with peers() as house:
        house.peer.automatic = lambda _: AnswerLost("enough")
        with pytest.raises(ToolCallFailed):
            await begin(house, arguments=odd)
        assert house.peer.requests[0].params == {"name": "echo", "arguments": odd}


@pytest.mark.spec("calls")
async def test_a_null_for_a_mirrored_parameter_is_absent_for_the_schema_and_sent_as_it_is() -> None:
    async with peers() as house:
        house.peer.automatic = lambda _: Result({"content": []}, 2)
        await begin(house, arguments={"text": "x", "n": None})
        assert house.peer.requests[-1].params["arguments"] == {"text": "x", "n": None}


@pytest.mark.spec("policy")
@pytest.mark.parametrize(
    ("server", "tool", "problem"),
    [("q", "echo", ServerNotFound), ("p", "nope", ToolNotFound), ("p", "ECHO", ToolNotFound)],
)
async def test_what_the_snapshot_does_not_enable_is_not_called(
    server: str, tool: str, problem: type[Problem]
) -> None:
    async with peers() as house:
        with pytest.raises(problem):
            await call(house.board, server, tool, {}, observe=house.events.append)
        assert house.peer.requests == []


@pytest.mark.spec("hydration")
async def test_a_server_that_cannot_be_reached_answers_with_its_cause() -> None:
    async with operations_house({"p": CATALOG}, is_hydrated=False) as house:
        house.connector.refusal = ServerUnavailable("p", "stdio", "no such file")
        with pytest.raises(ServerNotConnected) as raised:
            await begin(house)
        cause: Any = raised.value.facts["cause"]
        assert cause["code"] == "server-unavailable"


@pytest.mark.spec("problems")
async def test_a_lost_answer_is_never_sent_again_and_its_effect_unknown() -> None:
    async with peers() as house:
        problem = await ends_in(house, ToolCallFailed, AnswerLost("the stream ended"))
        assert problem.outcome is Outcome.UNKNOWN
        assert len(house.peer.requests) == 1


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    ("answer", "kind", "outcome"),
    [
        (RequestNotSent("no child"), ServerUnavailable, Outcome.NOT_SENT),
        (RemoteError(-32602, "no"), RemoteErrorAnswered, Outcome.REJECTED),
        ({"content": "text"}, ToolResultInvalid, Outcome.EXECUTED),
        ({"content": [], "structuredContent": {}}, ToolResultInvalid, Outcome.EXECUTED),
    ],
    ids=["not sent", "error", "malformed", "breaks its schema"],
)
async def test_each_failure_settles_its_own_call_and_leaves_the_server_usable(
    answer: Any, kind: type[Problem], outcome: Outcome
) -> None:
    async with peers() as house:
        problem = await ends_in(house, kind, answer, "table")
        assert problem.outcome is outcome
        assert (house.leases(), house.state("operations")) == ((), {})
        house.peer.automatic = lambda _: RemoteError(1, "well")
        with pytest.raises(RemoteErrorAnswered):
            await begin(house)


@pytest.mark.spec("policy")
async def test_a_host_tool_becomes_a_proposal_whatever_its_annotations_say() -> None:
    async with peers() as house:
        waiting = await begin(house, "deploy", {"svc": "api"}, thread_id="t-1")
        assert isinstance(waiting, Waiting)
        (interrupt,) = waiting.interrupts
        (started,) = house.events
        assert isinstance(started, ToolCallStarted)
        assert interrupt.document() == {
            "id": interrupt.id,
            "reason": "tool_call",
            "toolCallId": started.tool_call_id,
            "message": "Call tool 'deploy' of server 'p'?",
            "responseSchema": DECISION_SCHEMA,
            "expiresAt": interrupt.expires_at,
            "metadata": {
                "plurnk": {
                    "operation": waiting.operation,
                    "server": "p",
                    "tool": "deploy",
                    "effect": "host",
                    "arguments": {"svc": "api"},
                    "signature": '{"svc": string}',
                }
            },
        }
        assert len(interrupt.id) > 32, "nobody guesses it"
        assert house.peer.requests == []
        assert house.leases() == ()
        assert house.state("operations") == {
            waiting.operation: {"server": "p", "tool": "deploy", "state": "input_required"}
        }
        assert house.state("interactions") == {
            interrupt.id: {
                "operation": waiting.operation,
                "threadId": "t-1",
                "server": "p",
                "tool": "deploy",
                "message": "Call tool 'deploy' of server 'p'?",
                "expiresAt": interrupt.expires_at,
            }
        }


@pytest.mark.spec("policy")
async def test_the_operator_may_allow_every_effect() -> None:
    async with peers(PLURNK_HOST_EFFECT="allow") as house:
        await ends_in(house, ToolCallFailed, AnswerLost("x"), "table")
        house.peer.automatic = lambda _: AnswerLost("x")
        with pytest.raises(ToolCallFailed):
            await begin(house, "deploy", {"svc": "api"})


async def accept(house: OperationsHouse, waiting: Settled | Waiting, decision: str = "accept") -> Any:
    assert isinstance(waiting, Waiting)
    entries = [ResumeEntry(each.id, "resolved", {"decision": decision}) for each in waiting.interrupts]
    return await house.board.resume(entries, observe=house.events.append)


@pytest.mark.spec("calls")
async def test_an_accepted_proposal_is_sent_and_tells_only_its_result() -> None:
    async with peers() as house:
        waiting = await begin(house, "deploy", {"svc": "api"})
        house.peer.automatic = lambda request: request.result({"content": [TEXT]})
        ended = await accept(house, waiting)
        assert isinstance(ended, Settled)
        assert ended.result["content"] == [TEXT]
        assert [type(event) for event in house.events] == [ToolCallStarted, ToolCallEnded]
        assert house.peer.requests[0].params == {"name": "deploy", "arguments": {"svc": "api"}}
        assert (house.state("operations"), house.state("interactions"), house.leases()) == ({}, {}, ())


@pytest.mark.spec("calls")
async def test_a_rejected_proposal_settles_without_a_request() -> None:
    async with peers() as house:
        waiting = await begin(house, "deploy", {"svc": "api"})
        ended = await accept(house, waiting, "reject")
        assert ended.result == {"status": 200, "operation": waiting.operation, "rejected": True}
        assert house.peer.requests == []
        assert (house.state("operations"), house.state("interactions")) == ({}, {})


CHANGED = catalog([tool_entry("deploy", inputSchema=DEPLOY_SCHEMA, description="now it deletes")])


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    ("changed", "members"),
    [
        (CHANGED, {}),
        (catalog([]), {}),
        (CATALOG, {"read": ["deploy"]}),
        (CATALOG, {"tools": ["echo"]}),
        (CATALOG, {"args": ["--elsewhere"]}),
    ],
    ids=["another description", "gone", "another effect", "disabled", "another endpoint"],
)
async def test_consent_does_not_carry_over_to_a_tool_that_changed(
    changed: ServerCatalog, members: Mapping[str, Any]
) -> None:
    async with peers() as house:
        waiting = await begin(house, "deploy", {"svc": "api"})
        await house.replace("p", changed, members)
        with pytest.raises(ServerChanged) as raised:
            await accept(house, waiting)
        assert raised.value.outcome is Outcome.NOT_SENT
        assert house.peer.requests == []
        assert (house.leases(), house.state("operations"), house.state("interactions")) == ((), {}, {})


@pytest.mark.spec("calls")
async def test_consent_carries_over_a_reconnect_of_the_same_tool() -> None:
    async with peers() as house:
        waiting = await begin(house, "deploy", {"svc": "api"})
        await house.replace("p", CATALOG, {"read": ["echo"]})
        house.peer.automatic = lambda request: request.result({"content": []})
        assert isinstance(await accept(house, waiting), Settled)


@pytest.mark.spec("calls")
async def test_consent_for_a_server_that_is_gone_is_a_change_too() -> None:
    async with peers() as house:
        waiting = await begin(house, "deploy", {"svc": "api"})
        await house.detach("p")
        with pytest.raises(ServerChanged):
            await accept(house, waiting)


@pytest.mark.spec("limits")
async def test_the_result_limit_counts_the_bytes_of_the_result() -> None:
    async with peers(PLURNK_MAX_RESULT="200") as house:
        house.peer.automatic = lambda request: request.result(
            {"content": [{"type": "text", "text": "x" * 300}]}
        )
        with pytest.raises(Problem) as raised:
            await begin(house)
        assert raised.value.code == "result-too-large"
        assert (raised.value.facts["limit"], raised.value.outcome) == (200, Outcome.EXECUTED)
