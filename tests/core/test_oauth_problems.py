"""Problems of authorizing a server: the facts, and the next step by whether anything is left to complete."""

import pytest

from app.core import oauth_problems as p
from app.core.problem import Problem, Stage

pytestmark = pytest.mark.spec("problems")

SAMPLES: list[tuple[Problem, dict[str, object]]] = [
    (p.OAuthNotPending("s"), {"status": 404, "server": "s"}),
    (p.OAuthCallbackInvalid("s", "its state is another", is_over=False), {"status": 400, "server": "s"}),
    (p.sign_in_required("s"), {"status": 502, "code": "authorization-refused", "server": "s"}),
    (p.OAuthTargetConflict("s"), {"status": 409, "server": "s"}),
    (p.OAuthMetadataInvalid("s", "it has no S256"), {"status": 502, "server": "s"}),
    (
        p.OAuthClientCredentialsFailed("s", "it was refused", client_id="c"),
        {"status": 502, "server": "s", "clientId": "c"},
    ),
]


@pytest.mark.parametrize(("problem", "facts"), SAMPLES, ids=lambda each: getattr(each, "code", ""))
def test_a_problem_of_authorizing_has_its_facts_and_is_not_retryable(
    problem: Problem, facts: dict[str, object]
) -> None:
    document = problem.document(Stage.MANAGEMENT)

    assert document["retryable"] is False
    assert document.items() >= facts.items()


@pytest.mark.parametrize(("is_over", "advice"), [(True, "reconnect"), (False, "still pending")])
def test_a_refused_callback_says_whether_another_can_follow(*, is_over: bool, advice: str) -> None:
    problem = p.OAuthCallbackInvalid("s", "its state is another", is_over=is_over)

    assert advice in str(problem.document(Stage.MANAGEMENT)["detail"])
    assert problem.is_over is is_over
