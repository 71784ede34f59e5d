"""The table of actions: one row a kind, each under its own kind."""

import pytest

from app.actions.table import ACTIONS

pytestmark = pytest.mark.spec("actions")


def test_every_action_is_listed_under_its_kind_and_says_what_it_does() -> None:
    assert all(kind == action.kind for kind, action in ACTIONS.items())
    assert all(action.summary.endswith(".") for action in ACTIONS.values())


@pytest.mark.spec("observe")
def test_exactly_the_actions_that_change_a_workspace_are_audited() -> None:
    audited = {kind.removeprefix("workspace.mcp.") for kind, action in ACTIONS.items() if action.is_audited}
    assert audited == {"attach", "replace", "detach", "reconnect", "restore", "oauth.complete"}
