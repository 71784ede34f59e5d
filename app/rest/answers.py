"""What an action's end is on REST: result, interrupts or Problem, with its status. SPEC §agui, §problems."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, assert_never

import orjson

from app.actions.action import ActionOutcome, Done, Interrupted
from app.core.events import RunEvent, ToolCallStarted
from app.core.json_value import JsonObject
from app.core.operation_problems import OperationCancelled
from app.core.problem import Outcome, Problem, Stage
from app.core.problems import ShuttingDown
from app.doors.asgi import Receive, Scope, Send, send_whole
from app.doors.endpoint import streams_of
from app.doors.presence import presence_of
from app.doors.problem_response import logged_internal, send_problem
from app.doors.streams import Ending

_OK: Final = 200
"""``HTTPStatus.OK``, whose look-up costs a call."""
Work = Callable[[], Awaitable[ActionOutcome]]


class Observed:
    """What REST remembers of a request's work, whose end it tells alone: the operation, once there is one."""

    def __init__(self, operation: str | None = None) -> None:
        self.operation = operation

    def __call__(self, event: RunEvent) -> None:
        """Take notice of what happened."""
        if isinstance(event, ToolCallStarted):
            self.operation = event.operation

    def cut_off(self) -> Problem:
        """Return the end of work that shutdown stopped before it had one.

        A tool call may have had its effect: that is not answered with a Problem that invites to try again.
        """
        if self.operation is None:
            return ShuttingDown(was_begun=True).with_outcome(Outcome.UNKNOWN)
        return OperationCancelled(self.operation, by="shutdown", outcome=Outcome.UNKNOWN)


async def answer(
    scope: Scope, receive: Receive, send: Send, work: Work, *, stage: Stage, observed: Observed | None = None
) -> None:
    """Do the work while the client is there, then send how it ended; ``observed`` is what the work tells.

    Raises:
        ShuttingDown: nothing was begun.
    """
    shields = stage is not Stage.OPERATION
    with streams_of(scope).attend(receive, presence_of(scope), shields=shields) as attention:
        end: ActionOutcome | Problem | None = None
        with attention.work():
            try:
                end = await work()
            except Problem as problem:
                end = problem
            except Exception as failure:  # noqa: BLE001 the border of a request: a bug answers it, and no other
                end = logged_internal(failure)
        if attention.ending is not Ending.CLIENT_GONE:
            await _send(send, end or (observed or Observed()).cut_off(), stage)


async def send_json(send: Send, body: JsonObject, status: int = HTTPStatus.OK) -> None:
    """Answer with one JSON object."""
    await send_whole(send, status, orjson.dumps(body))


async def _send(send: Send, end: ActionOutcome | Problem, stage: Stage) -> None:
    match end:
        case Done(result, encoded):
            await send_whole(send, _status(result), encoded or orjson.dumps(result))
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
    return status if isinstance(status, int) else _OK
