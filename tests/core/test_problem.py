"""The document of a Problem: RFC 9457 members first, our facts after, the outcome for operations only."""

import pytest

from app.core.door_problems import InputMalformed
from app.core.operation_problems import AnswerInvalid, ArgumentsInvalid, ToolResultInvalid
from app.core.problem import DETAIL_MAX, NAME_MAX, Outcome, Problem, Stage, shortened
from app.core.problems import (
    ActionUnknown,
    DefinitionInvalid,
    ParameterInvalid,
    ParameterRequired,
    ReferenceMissing,
    ReferenceRefused,
)

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


LONG = "x" * 1_000_000
ERRORS = [(f"/{LONG}", LONG)] * 3


@pytest.mark.parametrize(
    "problem",
    [
        Sample(LONG),
        ActionUnknown(LONG),
        ParameterRequired(LONG),
        ParameterInvalid(LONG, LONG),
        DefinitionInvalid(ERRORS),
        ReferenceMissing(server="p", variable=LONG, field=LONG),
        ReferenceRefused(server="p", variable=LONG, field=LONG),
        ArgumentsInvalid("p", "t", ERRORS),
        AnswerInvalid("int-1", ERRORS),
        ToolResultInvalid("p", LONG, errors=ERRORS),
        InputMalformed(ERRORS),
    ],
    ids=lambda problem: type(problem).__name__,
)
def test_what_others_named_does_not_make_a_problem_large(problem: Problem) -> None:
    assert len(str(problem.document())) < DETAIL_MAX + 8 * NAME_MAX
    assert len(str(problem)) <= DETAIL_MAX


def test_a_text_that_is_shortened_shows_it() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "ab…"
