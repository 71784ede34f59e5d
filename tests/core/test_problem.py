"""The document of a Problem: RFC 9457 members first, our facts after, the outcome for operations only."""

import pytest

from app.core.problem import Outcome, Problem, Stage

pytestmark = pytest.mark.spec("problems")


class Sample(Problem):
    code, title, status, retryable = "sample", "Sample", 418, True


def test_a_document_has_the_standard_members_then_the_facts_that_are_known() -> None:
    assert Sample("It is short.", server="p", field=None).document() == {
        "type": "https://problems.plurnk.dev/mcp/management/sample",
        "title": "Sample",
        "status": 418,
        "detail": "It is short.",
        "code": "sample",
        "retryable": True,
        "stage": "management",
        "server": "p",
    }


def test_a_problem_of_an_operation_says_what_is_known_of_the_effect() -> None:
    problem = Sample("It is short.").with_outcome(Outcome.UNKNOWN)
    document = problem.document(Stage.OPERATION)
    assert document["type"] == "https://problems.plurnk.dev/mcp/operation/sample"
    assert (document["stage"], document["outcome"]) == ("operation", "unknown")
    assert "outcome" not in problem.document(Stage.MANAGEMENT)


def test_unless_somebody_says_otherwise_nothing_was_sent() -> None:
    assert Sample("It is short.").document(Stage.OPERATION)["outcome"] == "not-sent"
