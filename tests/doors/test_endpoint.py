"""One route's border: whatever its handler raises is answered, once."""

from typing import Any

import orjson
import pytest

from app.core.problems import ServerNotFound
from app.doors.asgi import Message, Receive, Scope, Send, send_whole
from app.doors.body import BodyLate, ClientGone
from app.doors.endpoint import AsgiEndpoint

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

    await AsgiEndpoint(handler)({"type": "http"}, receive, send)
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


async def test_an_answer_passes() -> None:
    head, _ = await answered(None)
    assert head["status"] == 200
