"""What each failure tells a program, and its exit status. SPEC §cli."""

import pytest

from app.cli.failures import (
    AnswerLost,
    CommandFailure,
    DaemonUnreachable,
    ProblemAnswer,
    QuestionOpen,
    RunCancelled,
    UsageFault,
)
from app.core.json_value import JsonObject

ERROR: JsonObject = {"error": {"detail": "What happened.", "next": "What to do."}}


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "failure, status, document",
    [
        (ProblemAnswer({"status": 409, "detail": "x"}), 3, {"problem": {"status": 409, "detail": "x"}}),
        (ProblemAnswer({"status": 502}), 4, {"problem": {"status": 502}}),
        (QuestionOpen("w", "op-1", [{"id": "i"}]), 6, {"operation": "op-1", "interrupts": [{"id": "i"}]}),
        (UsageFault("What happened.", "What to do."), 2, ERROR),
        (DaemonUnreachable("What happened.", "What to do."), 5, ERROR),
        (AnswerLost("What happened.", "What to do."), 5, ERROR),
        (RunCancelled("What happened.", "What to do."), 4, ERROR),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, CommandFailure) else "",
)
def test_a_failure_knows_its_exit_status_and_its_document(
    failure: CommandFailure, status: int, document: JsonObject
) -> None:
    assert failure.exit_status == status
    assert failure.document() == document
