"""Problems of operations: the facts, the bounds, and what is known of the effect."""

import pytest

from app.core import operation_problems as p
from app.core.problem import Outcome, Problem, Stage

pytestmark = pytest.mark.spec("problems")

SAMPLES: list[tuple[Problem, dict[str, object], str]] = [
    (p.ToolNotFound("s", "t"), {"server": "s", "tool": "t"}, "not-sent"),
    (p.ResourceNotFound("s"), {"server": "s"}, "not-sent"),
    (p.ResourceNotFound("s", outcome=Outcome.REJECTED), {"server": "s"}, "rejected"),
    (p.PromptNotFound("s"), {"server": "s"}, "not-sent"),
    (
        p.ArgumentsInvalid("s", "t", [("/a", "is required")]),
        {"server": "s", "tool": "t", "errors": [{"pointer": "/a", "message": "is required"}]},
        "not-sent",
    ),
    (
        p.RemoteErrorAnswered("s", rpc_code=-32602, message="m" * 900, data={"k": 1}, http_status=400),
        {"server": "s", "remote": {"code": -32602, "message": "m" * 512, "data": {"k": 1}}},
        "rejected",
    ),
    (p.RemoteErrorAnswered("s", http_status=503), {"server": "s", "remote": {"httpStatus": 503}}, "rejected"),
    (p.ToolCallFailed("s", "the stream ended"), {"server": "s"}, "unknown"),
    (p.ToolResultInvalid("s", "it has no content"), {"server": "s"}, "executed"),
    (
        p.ResultTooLarge("s", limit=5, setting="PLURNK_MAX_RESULT"),
        {"server": "s", "limit": 5, "setting": "PLURNK_MAX_RESULT"},
        "executed",
    ),
    (p.InputUnsupported("s", "sampling"), {"server": "s"}, "rejected"),
    (p.InterruptNotFound("i" * 500), {"interrupt": "i" * 128}, "not-sent"),
    (p.InterruptExpired("i"), {"interrupt": "i"}, "not-sent"),
    (p.InterruptConflict("i"), {"interrupt": "i"}, "not-sent"),
    (p.ResumeIncomplete("one is missing", missing=["i"]), {"missing": ["i"]}, "not-sent"),
    (
        p.AnswerInvalid("i", [("/decision", "is required")]),
        {"interrupt": "i", "errors": [{"pointer": "/decision", "message": "is required"}]},
        "not-sent",
    ),
    (p.OperationNotFound("op"), {"operation": "op"}, "not-sent"),
    (
        p.OperationCancelled("op", by="client", outcome=Outcome.UNKNOWN),
        {"operation": "op", "by": "client"},
        "unknown",
    ),
    (
        p.OperationTimeout("s", timeout_ms=5, outcome=Outcome.UNKNOWN),
        {"server": "s", "timeoutMs": 5},
        "unknown",
    ),
]


@pytest.mark.parametrize("problem, facts, outcome", SAMPLES, ids=[type(each[0]).__name__ for each in SAMPLES])
def test_a_problem_has_its_facts_its_outcome_and_a_sentence(
    problem: Problem, facts: dict[str, object], outcome: str
) -> None:
    assert problem.facts == facts
    assert problem.document(Stage.OPERATION)["outcome"] == outcome
    assert problem.detail.endswith(".")
