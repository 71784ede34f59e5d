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

ACTION_RESULT = "plurnk.action.result"
Outcome: TypeAlias = Literal["success", "cancelled"]


def result_value(kind: str, result: JsonObject) -> bytes:
    """Return the value for an action that ended as asked."""
    return orjson.dumps({"kind": kind, "ok": True, "result": result})


def problem_value(kind: str | None, problem: Problem, stage: Stage) -> bytes:
    """Return the value for an action that ended in a Problem; ``kind`` is None where the client gave none."""
    value: JsonObject = {} if kind is None else {"kind": kind}
    return orjson.dumps({**value, "ok": False, "problem": problem.document(stage)})


def custom(value: bytes) -> bytes:
    """Return the custom event that carries the value."""
    return orjson.dumps({"type": "CUSTOM", "name": ACTION_RESULT, "value": orjson.Fragment(value)})


def run_finished(thread_id: str, run_id: str, value: bytes, outcome: Outcome) -> bytes:
    """Return the terminal event of a run whose action ended."""
    return orjson.dumps(
        {
            "type": "RUN_FINISHED",
            "threadId": thread_id,
            "runId": run_id,
            "result": orjson.Fragment(value),
            "outcome": {"type": outcome},
        }
    )


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
