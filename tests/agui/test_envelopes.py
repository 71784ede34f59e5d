"""How a run ends: one value, carried twice."""

import orjson
import pytest

from app.agui.envelopes import custom, problem_value, result_value, run_error, run_finished, run_interrupted
from app.core.events import Interrupt
from app.core.operation_problems import OperationCancelled
from app.core.problem import Outcome, Stage
from app.core.problems import ServerNotFound
from tests.support.agui_events import parse_event

pytestmark = pytest.mark.spec("agui")

INTERRUPT = Interrupt(
    id="int-1",
    operation="op-7",
    reason="tool_call",
    message="Run deploy?",
    expires_at="2026-11-30T11:45:19Z",
    response_schema={"type": "object"},
    metadata={"operation": "op-7"},
    tool_call_id="call-a9",
    thread_id="t",
)


@pytest.mark.parametrize("outcome", ["success", "cancelled"])
def test_the_result_of_the_terminal_event_is_the_custom_value(outcome: str) -> None:
    value = result_value("workspace.mcp.list", {"servers": []})
    expected = {"kind": "workspace.mcp.list", "ok": True, "result": {"servers": []}}
    assert parse_event(b"".join(custom(value)).decode()) == {
        "type": "CUSTOM",
        "name": "plurnk.action.result",
        "value": expected,
    }
    ended = run_finished("t", "r", value, "cancelled" if outcome == "cancelled" else "success")
    assert parse_event(b"".join(ended).decode()) == {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r",
        "result": expected,
        "outcome": {"type": outcome},
    }


def test_a_result_that_was_written_already_is_not_written_again() -> None:
    encoded = b'{"servers":[]}'
    value = result_value("workspace.mcp.list", {"servers": []}, encoded)
    assert b"".join(value) == b"".join(result_value("workspace.mcp.list", {"servers": []}))
    assert any(part is encoded for part in run_finished("t", "r", value, "success"))


@pytest.mark.spec("problems")
def test_a_problem_speaks_for_the_stage_of_its_action() -> None:
    problem = ServerNotFound("p")
    value = orjson.loads(b"".join(problem_value("workspace.mcp.call", problem, Stage.OPERATION)))
    assert value == {"kind": "workspace.mcp.call", "ok": False, "problem": problem.document(Stage.OPERATION)}
    assert value["problem"]["outcome"] == "not-sent"


def test_a_run_that_named_no_kind_is_answered_without_one() -> None:
    value = orjson.loads(b"".join(problem_value(None, ServerNotFound("p"), Stage.MANAGEMENT)))
    assert value == {"ok": False, "problem": ServerNotFound("p").document()}


def test_an_interrupted_run_has_interrupts_and_no_result() -> None:
    assert parse_event(run_interrupted("t", "r", [INTERRUPT]).decode()) == {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r",
        "outcome": {
            "type": "interrupt",
            "interrupts": [
                {
                    "id": "int-1",
                    "reason": "tool_call",
                    "toolCallId": "call-a9",
                    "message": "Run deploy?",
                    "responseSchema": {"type": "object"},
                    "expiresAt": "2026-11-30T11:45:19Z",
                    "metadata": {"plurnk": {"operation": "op-7"}},
                }
            ],
        },
    }


def test_a_failed_run_carries_the_problem_where_clients_keep_it() -> None:
    problem = OperationCancelled("op-7", by="shutdown", outcome=Outcome.UNKNOWN)
    assert parse_event(run_error(problem, Stage.OPERATION).decode()) == {
        "type": "RUN_ERROR",
        "message": problem.detail,
        "code": "operation-cancelled",
        "metadata": {"plurnk": {"problem": problem.document(Stage.OPERATION)}},
    }
