"""One route's border: whatever its handler raises is answered, once."""

from typing import Any

import orjson
import pytest

from app.core.answers import Result
from app.core.problems import ServerNotFound
from app.doors.asgi import Message, Receive, Scope, Send, send_whole
from app.doors.body import BodyLate, ClientGone
from app.doors.endpoint import AsgiEndpoint
from tests.support.doors_house import call, doors_house, run_input, text_result
from tests.support.gated_connection import GatedRequest

pytestmark = pytest.mark.spec("problems")


async def answered(failure: Exception | None) -> list[Message]:
    sent: list[Message] = []

    async def handler(_scope: Scope, _receive: Receive, send: Send) -> None:
        if failure is not None:
            raise failure
        await send_whole(send, 200, b"{}")

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    await AsgiEndpoint(handler)({"type": "http", "headers": []}, receive, send)
    return sent


@pytest.mark.parametrize(
    "failure, status, code",
    [
        (ServerNotFound("p"), 404, "server-not-found"),
        (BodyLate(), 408, None),
        (RuntimeError("a bug"), 500, "internal"),
        (ExceptionGroup("a bug", [ValueError("inner")]), 500, "internal"),
    ],
    ids=["problem", "late", "bug", "group"],
)
async def test_what_a_handler_raises_is_answered(failure: Exception, status: int, code: str | None) -> None:
    head, body = await answered(failure)
    assert (head["status"], orjson.loads(body["body"]).get("code")) == (status, code)


async def test_a_client_that_is_gone_is_answered_nothing() -> None:
    assert await answered(ClientGone()) == []


@pytest.mark.spec("observe")
async def test_a_request_is_part_of_its_callers_trace_while_it_lasts() -> None:
    async with doors_house() as doors, doors.client() as client:
        carried: list[object] = []
        tracer = doors.app.serves.telemetry.tracer

        def answer(_: GatedRequest) -> Result:
            carried.append(tracer.carrier())
            return Result(text_result("hello"), 1)

        doors.peer.automatic = answer
        parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
        for headers in (
            {"traceparent": parent, "tracestate": "a=1"},
            {"traceparent": parent.upper(), "tracestate": "a=1"},
            {},
        ):
            path = "/v1/workspaces/w/actions"
            assert (await client.post(path, json=call("echo"), headers=headers)).status_code == 200
            run = run_input(call("echo"))
            assert (await client.post("/", json=run, headers=headers)).status_code == 200
    assert carried == [{"traceparent": parent, "tracestate": "a=1"}] * 2 + [{}] * 4


async def test_an_answer_passes() -> None:
    head, _ = await answered(None)
    assert head["status"] == 200
