"""``workspace.mcp.replace``: an absent name is not found, a default becomes the workspace's own."""

from pathlib import Path

import pytest

from app.core.problems import ServerNotFound
from tests.support.scripted_http import scripted_http
from tests.support.workspace_house import http, workspace_house

pytestmark = pytest.mark.spec("actions", "effective")


async def test_an_absent_name_is_not_found_and_nothing_is_prepared(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        with pytest.raises(ServerNotFound):
            await house.act("replace", server=http(peer))
        assert peer.seen == []


async def test_a_replaced_default_is_the_workspaces_own(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path, defaults={"d": http(peer, "d")}) as house:
        answered = await house.act("replace", server=http(peer, "d", tools=[]))
        assert answered["status"] == 200
        assert (answered["server"]["source"], answered["server"]["enabledTools"]) == ("workspace", [])
        assert (await house.listed("other"))["d"]["source"] == "service"
