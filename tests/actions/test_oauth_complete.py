"""``workspace.mcp.oauth.complete``: the callback releases what waits at that server; it is never shown itself."""

from pathlib import Path
from typing import Any

import pytest

from app.actions.action import Interrupted
from app.actions.table import ACTIONS
from app.core.answers import HttpRefusal
from app.core.oauth_problems import OAuthCallbackInvalid, OAuthNotPending
from app.core.problems import ParameterInvalid
from tests.support.acting import act, interrupted
from tests.support.board_house import NOTHING, RESULT, left
from tests.support.protected_house import complete, manage, pending, protected_house
from tests.support.sign_ins import FOREIGN, GatedAttempt, oauth, peer_answers, sign_in_house
from tests.support.workspace_house import workspace_house

pytestmark = pytest.mark.spec("oauth", "actions")

REFUSED = HttpRefusal(401)
CALL: dict[str, Any] = {"server": "p", "tool": "get"}


async def test_completing_without_a_pending_authorization_says_so(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        with pytest.raises(OAuthNotPending) as refused:
            await house.act("oauth.complete", name="p", callbackUrl="http://127.0.0.1/cb?code=canary")
        assert "canary" not in str(refused.value.document())


async def test_a_callback_is_for_the_server_and_the_workspace_that_it_names() -> None:
    attempt = GatedAttempt()
    async with protected_house(attempt) as house:
        await manage(house, "attach", server=oauth())
        for name in ("q", "zz"):
            with pytest.raises(OAuthNotPending):
                await complete(house, attempt.callback, name)
        with pytest.raises(ParameterInvalid):
            await complete(house, attempt.callback, "P")
        mine, house.workspace = house.workspace, house.manager.workspace("other")
        with pytest.raises(OAuthNotPending):
            await complete(house, attempt.callback)
        house.workspace = mine
        assert not attempt.is_over
        assert (await complete(house, attempt.callback))["status"] == 201


async def test_a_callback_releases_an_operation_and_carries_the_rest_of_it() -> None:
    first, second = GatedAttempt("first"), GatedAttempt("second")
    async with sign_in_house(first, second) as house:
        peer_answers(house, REFUSED, REFUSED, RESULT)
        call = await interrupted(house, ACTIONS["workspace.mcp.call"], **CALL)
        with pytest.raises(OAuthCallbackInvalid):
            await complete(house, FOREIGN)
        members = {"name": "p", "callbackUrl": first.callback}
        again = await act(house, ACTIONS["workspace.mcp.oauth.complete"], members)
        assert isinstance(again, Interrupted)
        assert (again.operation, await pending(house)) == (call.operation, [second.url])
        settled = await complete(house, second.callback)
        assert (settled["operation"], settled["content"]) == (call.operation, RESULT["content"])
        assert (left(house), await pending(house)) == (NOTHING, [])
        with pytest.raises(OAuthCallbackInvalid):
            await complete(house, second.callback)
