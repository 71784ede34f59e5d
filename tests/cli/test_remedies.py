"""Which command helps against a Problem. SPEC §cli, §problems."""

import re
from pathlib import Path

import pytest

from app.cli.app import COMMANDS
from app.cli.remedies import REMEDIES, command, remedy
from app.settings import VARIABLES

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.spec("cli", "problems")


@pytest.mark.parametrize(
    "problem, says",
    [
        (
            {"code": "server-exists", "server": "time"},
            "Change it: plurnk-mcpd replace -w team time …, or plurnk-mcpd detach -w team time first",
        ),
        (
            {"code": "server-exists"},
            "Change it: plurnk-mcpd replace -w team SERVER …, or plurnk-mcpd detach -w team SERVER first",
        ),
        ({"code": "shutting-down", "retryable": True}, "Trying again later may help."),
        ({"code": "remote-error", "retryable": False}, None),
        (
            {"code": "server-busy", "operations": ["op-1", "op-2"], "retryable": True},
            "Wait, or end what runs: plurnk-mcpd cancel -w team op-1",
        ),
        (
            {"code": "too-many", "setting": "PLURNK_MAX_SERVERS"},
            "The operator decides that in PLURNK_MAX_SERVERS.",
        ),
        ({}, None),
    ],
)
def test_a_problem_has_its_command(problem: dict[str, object], says: str | None) -> None:
    assert remedy(problem, " -w team") == says  # pyright: ignore[reportArgumentType] JSON by construction


def test_only_a_command_is_one() -> None:
    assert command({"code": "store-unheard-of", "retryable": True}, "") is None


def test_every_remedy_is_for_a_kind_of_problem_and_names_what_there_is() -> None:
    listed = (ROOT / "SPEC.md").read_text().split("## §problems", 1)[1].split("\n## §", 1)[0]
    assert set(REMEDIES) <= set(re.findall(r"`([a-z-]+)`", listed))
    said = " ".join(REMEDIES.values())
    assert set(re.findall(r"plurnk-mcpd (\w+)", said)) <= {*COMMANDS, "token"}
    assert set(re.findall(r"PLURNK_\w+", said)) <= set(VARIABLES)
