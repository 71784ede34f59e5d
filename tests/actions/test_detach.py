"""``workspace.mcp.detach``: a tombstone for a default, nothing left of an attachment."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.attachments import Detached
from app.core.problems import ParameterInvalid, ServerChanged, ServerNotFound
from tests.support.scripted_http import scripted_http
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("actions", "effective")


async def test_detaching_an_attachment_leaves_no_row(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        assert await house.act("detach", name="p") == {"status": 200, "name": "p", "detached": True}
        assert await house.rows() == {}
        assert await house.act("list") == {"servers": [], "detached": [], "pending": []}


async def test_detaching_what_shadows_a_default_leaves_a_tombstone(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path, defaults={"d": http(peer, "d")}) as house:
        await house.act("replace", server=http(peer, "d", tools=[]))
        await house.act("detach", name="d")
        assert await house.rows() == {"d": Detached()}
        assert await house.act("list") == {"servers": [], "detached": ["d"], "pending": []}
        with pytest.raises(ServerNotFound):
            await house.act("detach", name="d")


async def test_a_name_in_capitals_is_refused_in_an_action(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        with pytest.raises(ParameterInvalid) as refused:
            await house.act("detach", name="P")
        assert refused.value.facts == {"field": "name"}


@pytest.mark.spec("lifecycle")
async def test_what_waits_to_commit_is_still_only_being_prepared(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.workspace().ready()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group, house.workspace().committing():
                group.start_soon(_refused_as_changed, house, http(peer))
                while not house.connector.opened:
                    await anyio.sleep(0.005)
                await anyio.wait_all_tasks_blocked()
                assert (await house.act("detach", name="p"))["detached"] is True
        assert await house.rows() == await house.listed() == {}
        assert house.connector.unretired() == []


async def _refused_as_changed(house: WorkspaceHouse, definition: dict[str, Any]) -> None:
    with pytest.raises(ServerChanged):
        await house.act("attach", server=definition)


@pytest.mark.spec("lifecycle")
async def test_what_has_begun_to_commit_is_detached_once_it_is_there(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.workspace().ready()
        house.store.before_write = anyio.Event()

        async def attach() -> None:
            assert (await house.act("attach", server=http(peer)))["status"] == 201

        async def detach() -> None:
            assert (await house.act("detach", name="p"))["detached"] is True

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(attach)
                await house.store.writing.wait()
                group.start_soon(detach)
                await anyio.wait_all_tasks_blocked()
                house.store.before_write.set()
        assert await house.rows() == await house.listed() == {}
        assert house.connector.unretired() == []
