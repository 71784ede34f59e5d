"""The operator may use every workspace, a workspace's token its own."""

import pytest

from app.core.principal import Principal
from app.core.problems import WorkspaceRefused

pytestmark = pytest.mark.spec("security")


def test_the_operator_may_use_every_workspace() -> None:
    Principal().require("a")
    assert Principal().actor == "operator"


def test_a_workspace_token_is_for_its_workspace_only() -> None:
    Principal("a").require("a")
    assert Principal("a").actor == "workspace"
    with pytest.raises(WorkspaceRefused):
        Principal("a").require("A")


def test_what_is_the_operators_is_no_workspace_tokens() -> None:
    Principal().require_operator()
    with pytest.raises(WorkspaceRefused):
        Principal("a").require_operator()
