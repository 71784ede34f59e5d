"""The owner of a workspace's tasks: nobody who leaves takes it away, and no bug takes anything else down."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.problems import ShuttingDown
from app.workspaces.owner import Owner
from tests.support.cancelled_at import CancelledAt
from tests.support.scripted_http import default_answers, scripted_http, stream
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("hydration")


async def bug() -> None:
    raise RuntimeError("a bug")


async def test_a_first_user_that_leaves_at_any_await_leaves_a_workspace_for_the_others(
    tmp_path: Path,
) -> None:
    async with workspace_house(tmp_path) as house:
        step = 0
        while await _left_at(house, f"w{step}", step):
            step += 1
        assert step > 0


async def _left_at(house: WorkspaceHouse, workspace: str, step: int) -> bool:
    """Leave the first use at one await; return whether there is such an await."""
    scope = anyio.CancelScope()
    leaving = CancelledAt(house.act("list", workspace), step, scope.cancel)
    with anyio.fail_after(5), scope:
        await leaving
    with anyio.fail_after(5):
        assert await house.listed(workspace) == {}
    assert house.workspace(workspace).owner.is_alive
    return leaving.was_reached


async def test_a_first_user_whose_task_is_cancelled_natively_leaves_a_workspace_for_the_others(
    tmp_path: Path,
) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        for turns in range(12):
            name = f"w{turns}"
            first = asyncio.ensure_future(house.act("list", name))
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            first.cancel()
            await asyncio.wait([first])
            with anyio.fail_after(5):
                await house.act("attach", name, server=http(peer))


async def test_a_task_that_raises_ends_alone(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        before = house.workspace().connections()
        assert house.workspace().owner.start(bug)
        await anyio.wait_all_tasks_blocked()
        assert house.workspace().connections() == before == house.connector.unretired()


async def test_a_group_that_fails_takes_its_connections_and_nothing_else(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        for name in ("w", "other"):
            await house.act("attach", name, server=http(peer))
        house.workspace().group.start_soon(bug)
        with anyio.fail_after(5):
            while len(house.connector.unretired()) > 1:
                await anyio.sleep(0.005)
        assert house.workspace("other").connections() == house.connector.unretired()
        assert (await house.listed())["p"]["state"] == "connected"
        await house.act("attach", server=http(peer, "q"))
        assert len(house.connector.unretired()) == 3


@pytest.mark.spec("lifecycle")
async def test_a_change_that_is_being_prepared_ends_with_the_group_that_fails(tmp_path: Path) -> None:
    silent = stream(anyio.Event())
    async with scripted_http({"server/discover": silent}) as peer, workspace_house(tmp_path) as house:
        await house.workspace().ready()
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(_refused, house, http(peer))
                await peer.has_seen(1)
                house.workspace().group.start_soon(bug)
        peer.answers["server/discover"] = default_answers()["server/discover"]
        await house.act("attach", server=http(peer))
        assert house.workspace().connections() == house.connector.unretired()


async def _refused(house: WorkspaceHouse, definition: dict[str, Any]) -> None:
    with pytest.raises(ShuttingDown):
        await house.act("attach", server=definition)


async def test_a_stopped_owner_runs_nothing() -> None:
    async def begin(owner: Owner) -> None:
        await group.start(owner.run)

    owner = Owner("w", begin=begin, on_failure=bug)
    async with anyio.create_task_group() as group:
        assert not owner.start(bug)
        with pytest.raises(ShuttingDown):
            owner.group  # noqa: B018 the property raises
        await owner.be()
        owner.stop()
    assert not owner.is_alive
    with pytest.raises(ShuttingDown):
        await owner.be()
