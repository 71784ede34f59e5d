"""Problems of the doors: they say how to get in, and nothing about what is inside."""

import pytest

from app.core import door_problems as p
from app.core.problem import Problem

pytestmark = pytest.mark.spec("problems", "security")

SAMPLES: list[tuple[Problem, int, str]] = [
    (p.Unauthenticated(), 401, "plurnk-mcpd token"),
    (p.HostRefused(), 403, "PLURNK_ALLOWED_HOSTS"),
    (p.OriginRefused(), 403, "PLURNK_ALLOWED_ORIGINS"),
    (p.BodyTooLarge(limit=5), 413, "PLURNK_MAX_BODY"),
    (p.MediaTypeUnsupported(), 415, "application/json"),
    (p.InputMalformed([("/threadId", "is required")]), 422, "/threadId: is required"),
]


@pytest.mark.parametrize("problem, status, hint", SAMPLES, ids=[type(each[0]).__name__ for each in SAMPLES])
def test_a_refusal_names_the_way_in(problem: Problem, status: int, hint: str) -> None:
    assert problem.status == status
    assert hint in problem.detail
    assert not problem.retryable
