"""How a run ends, in bytes: result or Problem, interrupts, terminal event. SPEC §agui, §problems.

The value of ``plurnk.action.result`` and the ``result`` of the terminal event are one object, so it is
encoded once.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

import orjson

from app.core.events import Interrupt
from app.core.json_value import JsonObject
from app.core.problem import Problem, Stage

ACTION_RESULT = b"plurnk.action.result"
Parts: TypeAlias = tuple[bytes, ...]
"""What is one piece of JSON when it is joined: a large result is not copied for each event that carries it."""
Outcome: TypeAlias = Literal["success", "cancelled"]


def result_value(kind: str, result: JsonObject, encoded: bytes | None = None) -> Parts:
    """Return the value for an action that ended as asked; ``encoded`` is its result where that was written already."""
    return b'{"kind":%b,"ok":true,"result":' % orjson.dumps(kind), encoded or orjson.dumps(result), b"}"


def problem_value(kind: str | None, problem: Problem, stage: Stage) -> Parts:
    """Return the value for an action that ended in a Problem; ``kind`` is None where the client gave none."""
    value: JsonObject = {} if kind is None else {"kind": kind}
    return (orjson.dumps({**value, "ok": False, "problem": problem.document(stage)}),)


def custom(value: Parts) -> Parts:
    """Return the custom event that carries the value."""
    return b'{"type":"CUSTOM","name":"%b","value":' % ACTION_RESULT, *value, b"}"


def run_finished(thread_id: str, run_id: str, value: Parts, outcome: Outcome) -> Parts:
    """Return the terminal event of a run whose action ended."""
    ids = b'"threadId":%b,"runId":%b' % (orjson.dumps(thread_id), orjson.dumps(run_id))
    end = b',"outcome":{"type":"%b"}}' % outcome.encode()
    return b'{"type":"RUN_FINISHED",%b,"result":' % ids, *value, end


def run_interrupted(thread_id: str, run_id: str, interrupts: Sequence[Interrupt]) -> bytes:
    """Return the terminal event of a run that waits for answers; it has no result. AG-UI 1.0 interrupts."""
    outcome = {"type": "interrupt", "interrupts": [each.document() for each in interrupts]}
    return orjson.dumps({"type": "RUN_FINISHED", "threadId": thread_id, "runId": run_id, "outcome": outcome})


def run_error(problem: Problem, stage: Stage) -> bytes:
    """Return the terminal event of a failed run; clients keep its ``metadata``, and their open interrupts."""
    return orjson.dumps(
        {
            "type": "RUN_ERROR",
            "message": problem.detail,
            "code": problem.code,
            "metadata": {"plurnk": {"problem": problem.document(stage)}},
        }
    )
