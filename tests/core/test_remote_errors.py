"""What a peer's error shows of itself: bounded, and never cut in the middle of its data."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.answers import HttpRefusal, RemoteError, RequestFault
from app.core.json_value import Json
from app.core.problem import Outcome, Stage
from app.core.problems import ServerUnavailable
from app.core.remote_errors import REMOTE_DATA_MAX, bounded, fault_problem, refusal_problem


@pytest.mark.spec("problems")
def test_the_peers_words_are_a_bounded_fact_and_not_the_detail() -> None:
    problem = refusal_problem("p", RemoteError(-32000, "secret" * 200, {"k": [1]}, 500))
    assert problem.facts == {
        "server": "p",
        "remote": {"code": -32000, "message": ("secret" * 200)[:512], "data": {"k": [1]}},
    }
    assert "secret" not in problem.detail
    assert problem.document(Stage.OPERATION)["outcome"] == "rejected"


@pytest.mark.spec("problems")
def test_an_http_status_is_kept() -> None:
    problem = refusal_problem("p", HttpRefusal(429, "Bearer"))
    assert problem.facts == {"server": "p", "remote": {"httpStatus": 429}}
    assert "429" in problem.detail


@pytest.mark.spec("oauth")
def test_a_refusal_that_knows_its_cause_is_that_problem_and_rejected() -> None:
    cause = ServerUnavailable("p", "http", "its authorization server cannot be reached")
    problem = refusal_problem("p", HttpRefusal(401, "Bearer", cause))
    assert problem is not cause
    assert (problem.code, problem.facts, problem.outcome) == (cause.code, cause.facts, Outcome.REJECTED)
    assert cause.outcome is not Outcome.REJECTED


def _nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, None),
        (0, 0),
        (False, False),
        ("x" * (REMOTE_DATA_MAX - 2), "x" * (REMOTE_DATA_MAX - 2)),
        ("x" * (REMOTE_DATA_MAX - 1), None),
        ("é" * (REMOTE_DATA_MAX // 2), None),
        (_nested(300), None),
    ],
    ids=["absent", "zero", "false", "at the limit", "over", "bytes count", "too deep"],
)
def test_error_data_is_shown_whole_or_not_at_all(data: Json, shown: Json) -> None:
    assert bounded(data) == shown


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_bounding_never_changes_data(data: Any) -> None:
    assert bounded(data) in (data, None)


def test_a_fault_of_a_kind_we_do_not_know_leaves_the_effect_unknown() -> None:
    problem = fault_problem("p", "http", RequestFault("odd"))
    assert problem.outcome is Outcome.UNKNOWN
