"""What servers with tasks put on the wire, good and bad, and what they get, over both transports. SPEC §calls.

Hand-written wire for what no good server sends.
"""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.json_value import JsonObject
from app.core.problem import Problem
from app.operations.board import Settled, Waiting
from app.operations.tool_call import call
from tests.operations.test_real_peers import board_of, ignore
from tests.operations.test_scripted_asking import DECLARED, ECHO, META, by_http, replied
from tests.support.children import SCRIPTED_STDIO
from tests.support.deferring import TASK, completed, failed, handle, state, wants
from tests.support.eliciting import dismisses, form
from tests.support.peers.programs import stdio_definition
from tests.support.scripted_http import FRESH, REVISION, Reply, json_reply, scripted_http

pytestmark = pytest.mark.spec("calls")

NOT_FOUND: JsonObject = {"code": -32602, "message": "Failed to retrieve task: Task not found"}


def without(value: JsonObject, member: str) -> JsonObject:
    """Return the object without this member."""
    return {name: each for name, each in value.items() if name != member}


# The answer to tools/call, the answer to tasks/get, the Problem, and whether a task is left to be cancelled.
MALFORMED: dict[str, tuple[JsonObject, JsonObject, str, bool]] = {
    "handle without taskId": (without(handle(), "taskId"), {}, "tool-result-invalid", False),
    "handle of a null id": (handle(taskId=None), {}, "tool-result-invalid", False),
    "handle of an unknown status": (handle(status="queued"), {}, "tool-result-invalid", True),
    "handle with half an interval": (handle(pollIntervalMs=0.5), {}, "tool-result-invalid", True),
    "handle with a text as interval": (handle(pollIntervalMs="50"), {}, "tool-result-invalid", True),
    "handle with a truth as interval": (handle(pollIntervalMs=True), {}, "tool-result-invalid", True),
    "state without taskId": (handle(), without(completed(), "taskId"), "tool-result-invalid", True),
    "state of another task": (handle(), completed(taskId="other"), "tool-result-invalid", True),
    "state of an unknown status": (handle(), state("paused"), "tool-result-invalid", True),
    "state of a null status": (handle(), state("working", status=None), "tool-result-invalid", True),
    "state of an unknown type": (handle(), completed(resultType="what"), "tool-result-invalid", True),
    "interval of a text": (handle(), state("working", pollIntervalMs="1"), "tool-result-invalid", True),
    "null requests": (handle(), state("input_required", inputRequests=None), "tool-result-invalid", True),
    "null request": (handle(), wants(a=None), "tool-result-invalid", True),
    "roots": (handle(), wants(a=form(), b={"method": "roots/list"}), "input-unsupported", True),
    "null result": (handle(), state("completed", result=None), "tool-result-invalid", False),
    "result of another form": (handle(), completed({"content": None}), "tool-result-invalid", False),
    "task in a task": (handle(), completed(handle()), "tool-result-invalid", False),
    "null error": (handle(), state("failed", error=None), "tool-result-invalid", False),
    "error of a text": (handle(), state("failed", error="no"), "tool-result-invalid", False),
    "failed": (handle(), failed(), "remote-error", False),
    "cancelled": (handle(), state("cancelled"), "operation-cancelled", False),
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_over_http_a_task_that_cannot_be_followed_ends_the_call(name: str) -> None:
    created, observed, code, is_left = MALFORMED[name]
    answers: Any = {
        "tools/call": replied(created),
        "tasks/get": replied(observed),
        "tasks/cancel": replied({}),
    }
    async with scripted_http(answers) as peer, board_of(by_http(peer)) as board:
        with pytest.raises(Problem) as raised:
            await call(board, "p", "echo", {}, observe=ignore)
        assert raised.value.code == code
        await board.finish()
        assert len(peer.of("tools/call")) == 1
        assert [seen.params["taskId"] for seen in peer.of("tasks/cancel")] == [TASK] * is_left
        assert len(board._open) == 0


@pytest.mark.parametrize("interval", [None, 0, -5, -9007199254740991])
async def test_an_odd_interval_is_bounded(interval: int | None) -> None:
    answers: Any = {"tools/call": replied(handle(pollIntervalMs=interval)), "tasks/get": replied(completed())}
    async with scripted_http(answers) as peer, board_of(by_http(peer)) as board:
        assert isinstance(await call(board, "p", "echo", {}, observe=ignore), Settled)
        assert len(peer.of("tasks/get")) == 1


async def test_an_interval_beyond_the_deadline_waits_until_it_is_cancelled() -> None:
    answers: Any = {
        "tools/call": replied(handle(pollIntervalMs=9007199254740991)),
        "tasks/cancel": replied({}),
    }
    async with (
        scripted_http(answers) as peer,
        board_of(by_http(peer)) as board,
        anyio.create_task_group() as group,
    ):

        async def client() -> None:
            with pytest.raises(Problem):
                await call(board, "p", "echo", {}, observe=ignore)

        group.start_soon(client)
        with anyio.fail_after(5):
            while not (open_ones := board._open.all()) or open_ones[0].machine.task_id is None:
                await anyio.sleep(0.01)
        board.cancel(open_ones[0].id)
        await board.finish()
        assert (len(peer.of("tasks/get")), len(peer.of("tasks/cancel"))) == (0, 1)


@pytest.mark.spec("connection")
async def test_over_http_every_request_about_a_task_names_it_and_declares_the_extension() -> None:
    gets = [replied(wants(a=form())), replied(wants(a=form())), replied(completed())]
    answers: Any = {"tools/call": replied(handle()), "tasks/get": gets, "tasks/update": replied({})}
    async with scripted_http(answers) as peer, board_of(by_http(peer)) as board:
        waiting = await call(board, "p", "echo", {}, observe=ignore)
        assert isinstance(waiting, Waiting)
        assert isinstance(await board.resume([dismisses(waiting.interrupts[0].id)], observe=ignore), Settled)
        assert [seen.message["method"] for seen in peer.seen][-5:] == [
            "tools/call",
            "tasks/get",
            "tasks/update",
            "tasks/get",
            "tasks/get",
        ]
        about = [seen for seen in peer.seen if seen.message["method"].startswith("tasks/")]
        assert {seen.headers["mcp-name"] for seen in about} == {TASK}
        assert all(seen.headers["mcp-method"] == seen.message["method"] for seen in about)
        assert all(seen.params["_meta"][META] == DECLARED for seen in peer.seen)
        assert not any("progressToken" in seen.params["_meta"] for seen in about)


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    ("method", "reply", "code", "outcome"),
    [
        ("tools/call", (400, {"code": -32021, "message": "no"}), "capability-required", "rejected"),
        ("tasks/get", (400, {"code": -32021, "message": "no"}), "capability-required", "unknown"),
        ("tasks/get", (200, NOT_FOUND), "tool-call-failed", "unknown"),
        ("tasks/get", (200, {"code": -32603, "message": "no"}), "remote-error", "unknown"),
        ("tasks/get", (404, {"code": -32601, "message": "no"}), "remote-error", "unknown"),
    ],
)
async def test_an_error_says_what_is_known_of_the_effect(
    method: str, reply: tuple[int, JsonObject], code: str, outcome: str
) -> None:
    status, error = reply
    refused = json_reply({"jsonrpc": "2.0", "id": "$id", "error": error}, status=status)
    answers: Any = {"tools/call": replied(handle()), "tasks/cancel": replied({}), method: refused}
    async with scripted_http(answers) as peer, board_of(by_http(peer)) as board:
        with pytest.raises(Problem) as raised:
            await call(board, "p", "echo", {}, observe=ignore)
        assert (raised.value.code, str(raised.value.outcome)) == (code, outcome)


async def test_over_http_a_poll_that_was_lost_is_sent_again() -> None:
    answers: Any = {
        "tools/call": replied(handle()),
        "tasks/get": [Reply(status=503, body="busy"), replied(completed())],
    }
    async with scripted_http(answers) as peer, board_of(by_http(peer)) as board:
        assert isinstance(await call(board, "p", "echo", {}, observe=ignore), Settled)
        assert (len(peer.of("tools/call")), len(peer.of("tasks/get"))) == (1, 2)


def script(log: Path, **on: list[Any]) -> str:
    """Return the script of a child that logs what it reads."""
    discovered = {**FRESH, "supportedVersions": [REVISION], "capabilities": {"tools": {}}}
    steps = {name.replace("_", "/"): told for name, told in on.items()}
    listed = {**FRESH, "tools": [ECHO]}
    usual = {"server/discover": [{"result": discovered}], "tools/list": [{"result": listed}]}
    return json.dumps({"log": str(log), "births": f"{log}.births", "on": {**usual, **steps}})


def read(log: Path) -> list[JsonObject]:
    """Return what children read from the first call on."""
    messages = [json.loads(line) for line in log.read_bytes().splitlines() if line != b"EOF"]
    return [each for each in messages if each["method"] not in {"server/discover", "tools/list"}]


async def test_over_stdio_a_task_is_polled_and_cancelled_by_its_own_request(tmp_path: Path) -> None:
    log = tmp_path / "log"
    told = script(
        log,
        tools_call=[{"result": handle()}],
        tasks_get=[{"result": wants(a=form())}],
        tasks_cancel=[{"result": {"resultType": "complete"}}],
    )
    async with board_of(stdio_definition("p", SCRIPTED_STDIO, told, read=["echo"])) as board:
        waiting = await call(board, "p", "echo", {}, observe=ignore)
        assert isinstance(waiting, Waiting)
        board.cancel(waiting.operation)
        await board.finish()
    # No notifications/cancelled among them.
    assert [each["method"] for each in read(log)] == ["tools/call", "tasks/get", "tasks/cancel"]


@pytest.mark.parametrize("is_durable", [True, False])
async def test_over_stdio_a_task_is_asked_about_again_once_its_server_is_back(
    tmp_path: Path, *, is_durable: bool
) -> None:
    log = tmp_path / "log"
    later: JsonObject = {"result": completed()} if is_durable else {"error": NOT_FOUND}
    told = script(
        log,
        tools_call=[{"result": handle()}],
        tasks_get=[{"exit": 3, "birth": 1}, {**later, "birth": 2}],
    )
    async with board_of(stdio_definition("p", SCRIPTED_STDIO, told, read=["echo"])) as board:
        if is_durable:
            assert isinstance(await call(board, "p", "echo", {}, observe=ignore), Settled)
        else:
            with pytest.raises(Problem) as raised:
                await call(board, "p", "echo", {}, observe=ignore)
            assert (raised.value.code, str(raised.value.outcome)) == ("tool-call-failed", "unknown")
    assert [each["method"] for each in read(log)].count("tools/call") == 1
