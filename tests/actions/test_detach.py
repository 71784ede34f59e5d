"""``workspace.mcp.detach``: a tombstone for a default, nothing left of an attachment."""

from pathlib import Path

import pytest

from app.core.attachments import Detached
from app.core.problems import ParameterInvalid, ServerNotFound
from tests.support.scripted_http import scripted_http
from tests.support.workspace_house import http, workspace_house

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
