"""Problems as application/problem+json, with the headers that their status asks for."""

from http import HTTPStatus
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from app.core.door_problems import BodyTooLarge, Unauthenticated
from app.core.problem import Problem, Stage
from app.core.problems import ServerNotFound, ShuttingDown, TooMany
from app.doors.asgi import Message
from app.doors.problem_response import logged_internal, send_blank_problem, send_problem

pytestmark = pytest.mark.spec("problems")


class Answer:
    """What was sent."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def send(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return self.messages[0]["status"]

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.messages[0]["headers"])

    @property
    def document(self) -> Any:
        return orjson.loads(self.messages[1]["body"])


@pytest.mark.parametrize(
    "problem, more",
    [
        (ServerNotFound("p"), {}),
        (Unauthenticated(), {b"www-authenticate": b'Bearer realm="plurnk-mcpd"'}),
        (TooMany("streams", limit=1, setting="S"), {b"retry-after": b"1"}),
        (ShuttingDown(), {b"retry-after": b"1"}),
        (BodyTooLarge(limit=1), {b"connection": b"close"}),
    ],
    ids=lambda value: value.code if isinstance(value, Problem) else "",
)
async def test_a_problem_is_answered_with_its_document_and_status(
    problem: Problem, more: dict[bytes, bytes]
) -> None:
    answer = Answer()
    await send_problem(answer.send, problem)
    assert (answer.status, answer.document) == (problem.status, problem.document())
    assert answer.headers.pop(b"content-length")
    expected = {b"content-type": b"application/problem+json", b"cache-control": b"no-store", **more}
    assert {name: value for name, value in answer.headers.items() if name != b"content-length"} == expected


async def test_a_problem_of_an_operation_tells_its_outcome() -> None:
    answer = Answer()
    await send_problem(answer.send, ServerNotFound("p"), stage=Stage.OPERATION)
    assert answer.document["outcome"] == "not-sent"


async def test_what_is_no_kind_of_problem_is_blank() -> None:
    answer = Answer()
    await send_blank_problem(answer.send, HTTPStatus.REQUEST_TIMEOUT, "late", headers=[(b"x", b"1")])
    assert answer.document == {
        "type": "about:blank",
        "title": "Request Timeout",
        "status": 408,
        "detail": "late",
    }
    assert (answer.status, answer.headers[b"x"], answer.headers[b"connection"]) == (408, b"1", b"close")


def test_a_bug_is_logged_with_its_traceback_under_the_trace_that_is_told() -> None:
    with capture_logs() as logs:
        problem = logged_internal(RuntimeError("secret-canary"))
    (entry,) = logs
    assert (entry["event"], entry["trace"]) == ("internal-failure", problem.facts["trace"])
    assert isinstance(entry["exc_info"], RuntimeError)
    assert "secret-canary" not in str(problem.document())
