"""A soak of seconds, so that the one of hours cannot rot, and the reference it has. SPEC §lifecycle."""

from pathlib import Path

import pytest

from tests.soak.memory import Memory, slope
from tests.soak.model import Change, Workspace, canonical
from tests.soak.peers import DEFAULT
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
    assert slope([(0, 1), (1, 1)]) == slope([(0, 1)]) == slope([]) == 0.0


def memory(*pieces: tuple[int, float], more: float = 0.0) -> Memory:
    """Return a life of pieces, each of so many minutes at so many MiB a minute; connections are so many more."""
    points, mib = [(0.0, 100.0, 0.0)], 100.0
    for minutes, rate in pieces:
        for _ in range(minutes * 60):
            mib += rate / 60
            points.append((points[-1][0] + 1, mib, points[-1][2] + more / 60))
    return Memory(points)


@pytest.mark.parametrize(
    ("life", "is_settled", "growth", "is_flat"),
    [
        (memory((10, 5.0), (5, 0.0)), True, 0.0, True),
        (memory((15, 1.1)), True, 1.1, False),
        (memory((30, 0.0), (30, 2.0)), True, 1.86, False),
        (memory((15, 1.5), more=3.0), True, 1.5, True),
        (memory((15, 1.5), more=2.0), True, 1.5, False),
        (memory((5, 20.0)), False, 20.0, True),
        (memory((5, 50.0)), False, 50.0, False),
        (Memory([]), False, 0.0, True),
    ],
    ids=[
        "settles",
        "grows for ever",
        "grows late",
        "as its connections",
        "more than its connections",
        "young",
        "leaks outright",
        "none",
    ],
)
def test_a_life_is_judged_once_as_much_is_forgotten_as_comes(
    life: Memory, is_settled: bool, growth: float, is_flat: bool
) -> None:
    assert (life.is_settled, life.growth) == (is_settled, pytest.approx(growth, abs=0.1))
    try:
        life.require_flat()
    except AssertionError:
        assert not is_flat
    else:
        assert is_flat
