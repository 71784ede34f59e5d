"""``workspace.mcp.watch``: stays open for as long as it was asked to."""

from pathlib import Path

import anyio
import pytest

from app.core.problems import ParameterInvalid
from tests.support.workspace_house import workspace_house

pytestmark = pytest.mark.spec("watch")


async def test_a_watch_with_seconds_ends_by_itself(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        with anyio.fail_after(5):
            assert await house.act("watch", seconds=0.01) == {"status": 200}


async def test_a_watch_without_seconds_stays(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        with anyio.move_on_after(0.1) as left:
            await house.act("watch")
        assert left.cancelled_caught


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e9, "5", True])
async def test_a_time_that_is_none_is_refused(tmp_path: Path, seconds: object) -> None:
    async with workspace_house(tmp_path) as house:
        with pytest.raises(ParameterInvalid):
            await house.act("watch", seconds=seconds)


async def test_a_watch_does_not_hydrate_the_workspace(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        await house.act("watch", seconds=0.01)
        assert not house.workspace().owner.is_alive
