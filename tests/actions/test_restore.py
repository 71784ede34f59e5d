"""``workspace.mcp.restore``: the workspace's entry goes, the service default shows again."""

from pathlib import Path

import pytest

from app.core.problems import ServerNotFound, TooMany
from tests.support.scripted_http import scripted_http
from tests.support.workspace_house import http, workspace_house

pytestmark = pytest.mark.spec("actions", "effective")


@pytest.mark.parametrize("hidden_by", ["detach", "replace", "nothing"])
async def test_the_default_shows_again_and_no_row_is_left(tmp_path: Path, hidden_by: str) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path, defaults={"d": http(peer, "d")}) as house:
        if hidden_by == "detach":
            await house.act("detach", name="d")
        elif hidden_by == "replace":
            await house.act("replace", server=http(peer, "d", tools=[]))
        answered = await house.act("restore", name="d")
        assert (answered["status"], answered["server"]["source"], answered["server"]["state"]) == (
            200,
            "service",
            "connected",
        )
        assert await house.rows() == {}
        assert len(house.connector.unretired()) == 1


async def test_a_name_without_a_default_is_not_found_and_its_attachment_stays(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        with pytest.raises(ServerNotFound):
            await house.act("restore", name="p")
        assert list(await house.rows()) == ["p"]


@pytest.mark.spec("limits")
async def test_a_default_that_would_be_one_server_too_many_stays_hidden(tmp_path: Path) -> None:
    limit = {"PLURNK_MAX_SERVERS": "1"}
    async with (
        scripted_http() as peer,
        workspace_house(tmp_path, defaults={"d": http(peer, "d")}, environment=limit) as house,
    ):
        await house.act("restore", name="d")
        await house.act("detach", name="d")
        await house.act("attach", server=http(peer))
        with pytest.raises(TooMany) as refused:
            await house.act("restore", name="d")
        assert refused.value.facts == {"limit": 1, "setting": "PLURNK_MAX_SERVERS"}
        assert list(await house.listed()) == ["p"]
        assert len(house.connector.unretired()) == 1
