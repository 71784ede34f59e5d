"""A soak of seconds, so that the one of hours cannot rot, and the reference it has. SPEC §lifecycle."""

from pathlib import Path

import pytest

from tests.soak.model import Change, Workspace, canonical
from tests.soak.peers import DEFAULT
from tests.soak.remains import slope
from tests.soak.report import figures_of
from tests.soak.soaking import Effort, soak

WEB = {"name": "web"}


@pytest.mark.spec("lifecycle", "state", "connection", "calls", "shutdown")
@pytest.mark.timeout(180)
async def test_a_soak_of_seconds_leaves_nothing_and_the_database_equals_the_model(tmp_path: Path) -> None:
    figures = await soak(tmp_path, Effort(seconds=6, workspaces=8, clients=4, seed=1))
    assert figures.lives >= 2
    assert figures.carried_out
    assert "| lives of the daemon |" in figures_of(figures)


def test_the_reference_follows_changes_defaults_and_tombstones() -> None:
    workspace = Workspace("w")
    assert workspace.effective == {DEFAULT: "service"}
    workspace.entries = workspace.after(Change("detach", DEFAULT))
    assert (workspace.effective, workspace.tombstones) == ({}, [DEFAULT])
    workspace.entries = workspace.after(Change("attach", "web", WEB))
    workspace.entries = workspace.after(Change("restore", DEFAULT))
    assert workspace.effective == {DEFAULT: "service", "web": "workspace"}
    assert workspace.may_say(Change("attach", "web", WEB)) == {"server-exists", "shutting-down"}
    assert "ok" not in workspace.may_say(Change("replace", "child", WEB))


@pytest.mark.parametrize(
    "rows", [{}, {"web": canonical(WEB)}, {DEFAULT: None}, {"web": canonical({"name": "other"})}], ids=str
)
def test_a_change_that_nobody_saw_happened_as_a_whole_or_not_at_all(rows: dict[str, str | None]) -> None:
    workspace, is_possible = Workspace("w"), rows in ({}, {"web": canonical(WEB)})
    try:
        workspace.adopt(rows, Change("attach", "web", WEB))
    except AssertionError:
        assert not is_possible
    else:
        assert is_possible
        assert workspace.entries == rows


def test_the_slope_is_that_of_the_line() -> None:
    assert slope([(0, 1), (1, 3), (2, 5)]) == pytest.approx(2.0)
    assert slope([(0, 1), (1, 1)]) == 0.0
