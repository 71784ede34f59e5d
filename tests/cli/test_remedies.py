"""Which command helps against a Problem. SPEC §cli, §problems."""

import pytest

from app.cli.remedies import remedy

pytestmark = pytest.mark.spec("cli", "problems")


@pytest.mark.parametrize(
    "problem, says",
    [
        ({"code": "server-exists", "server": "time"}, "Detach it first: plurnk-mcpd detach -w team time"),
        ({"code": "server-exists"}, "Detach it first: plurnk-mcpd detach -w team SERVER"),
        ({"code": "store-unavailable", "retryable": True}, "Trying again later may help."),
        ({"code": "definition-invalid", "retryable": False}, None),
        ({}, None),
    ],
)
def test_a_problem_has_its_command(problem: dict[str, object], says: str | None) -> None:
    assert remedy(problem, " -w team") == says  # pyright: ignore[reportArgumentType] JSON by construction
