"""What an action's end is on REST: result, interrupts or Problem, with its status. SPEC §agui, §problems."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import assert_never

import orjson

from app.actions.action import ActionOutcome, Done, Interrupted
from app.core.events import RunEvent
from app.core.json_value import JsonObject
from app.core.operation_problems import OperationCancelled
from app.core.problem import Outcome, Problem, Stage
from app.core.problems import ShuttingDown
from app.doors.asgi import Receive, Scope, Send, send_whole
from app.doors.endpoint import streams_of
from app.doors.problem_response import logged_internal, send_problem
from app.doors.streams import Ending

Work = Callable[[], Awaitable[ActionOutcome]]


async def answer(scope: Scope, receive: Receive, send: Send, work: Work, *, stage: Stage) -> None:
    """Do the work while the client is there, then send how it ended.

    Raises:
        ShuttingDown: nothing was begun.
    """
    with streams_of(scope).attend(receive) as attention:
        ends: list[ActionOutcome | Problem] = []
        with attention.work():
            ends.append(await _end_of(work))
        if attention.ending is Ending.CLIENT_GONE:
            return
        if not ends or (attention.ending is Ending.SHUTDOWN and isinstance(ends[0], OperationCancelled)):
            ends = [ShuttingDown().with_outcome(Outcome.UNKNOWN)]
        await _send(send, ends[0], stage)


async def send_json(send: Send, body: JsonObject, status: int = HTTPStatus.OK) -> None:
    """Answer with one JSON object."""
    await send_whole(send, status, orjson.dumps(body))


def unobserved(_event: RunEvent) -> None:
    """Take no notice: REST tells the end alone."""


async def _end_of(work: Work) -> ActionOutcome | Problem:
    try:
        return await work()
    except Problem as problem:
        return problem
    except Exception as failure:  # noqa: BLE001 the border of a request: a bug answers it, and no other
        return logged_internal(failure)


async def _send(send: Send, end: ActionOutcome | Problem, stage: Stage) -> None:
    match end:
        case Done(result):
            await send_json(send, result, _status(result))
        case Interrupted(operation, interrupts):
            questions: JsonObject = {
                "operation": operation,
                "interrupts": [each.document() for each in interrupts],
            }
            await send_json(send, questions, HTTPStatus.ACCEPTED)
        case Problem():
            await send_problem(send, end, stage=stage)
        case _:
            assert_never(end)


def _status(result: JsonObject) -> int:
    """Return the status that the result names, 200 where it names none."""
    status = result.get("status")
    return status if isinstance(status, int) else HTTPStatus.OK
