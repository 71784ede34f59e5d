"""Names of servers and workspaces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.names import (
    RESERVED_SERVER_NAMES,
    parse_server_name,
    parse_workspace_name,
    server_name_fault,
)
from app.core.problems import ParameterInvalid, WorkspaceInvalid, WorkspaceRequired


@pytest.mark.spec("definition")
@pytest.mark.parametrize("name", ["a", "git-hub", "a1-", "a" * 64])
def test_a_good_server_name_is_returned(name: str) -> None:
    assert parse_server_name(name) == name


@pytest.mark.spec("definition")
@pytest.mark.parametrize(
    "name",
    ["", "A", "1a", "-a", "a_b", "a.b", "a\n", "\u00e4", "a" * 65, 5, None, *sorted(RESERVED_SERVER_NAMES)],
)
def test_what_is_no_server_name_is_refused_naming_the_field(name: object) -> None:
    with pytest.raises(ParameterInvalid) as refused:
        parse_server_name(name, field="server")
    assert refused.value.facts == {"field": "server"}


@pytest.mark.spec("definition")
def test_a_reserved_name_says_that_it_is_one() -> None:
    assert server_name_fault("worker") == "'worker' is a reserved name"


@pytest.mark.spec("problems")
@pytest.mark.parametrize("name", ["a", "A.b_c-9", "-", "_", "a..b", "x" * 128])
def test_a_good_workspace_name_is_returned(name: str) -> None:
    assert parse_workspace_name(name) == name


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    "name", [".", "..", ".a", "a/b", "a b", "\u00e4", "a\n", "x" * 129, 5, ["a"], "a%2e"]
)
def test_what_is_no_workspace_name_is_refused(name: object) -> None:
    with pytest.raises(WorkspaceInvalid):
        parse_workspace_name(name)


@pytest.mark.spec("problems")
@pytest.mark.parametrize("name", [None, ""])
def test_an_absent_workspace_is_required(name: object) -> None:
    with pytest.raises(WorkspaceRequired):
        parse_workspace_name(name)


@given(st.text(max_size=8))
def test_a_workspace_name_can_stand_in_a_path_and_a_log_line(name: str) -> None:
    try:
        parse_workspace_name(name)
    except (WorkspaceInvalid, WorkspaceRequired):
        return
    assert name.isascii()
    assert not set(name) & set("/\\%?# \n\r\0")
    assert name not in {".", ".."}
