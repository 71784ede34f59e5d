"""``workspace.mcp.oauth.complete``: nothing is ever pending yet, and the callback is never shown."""

from pathlib import Path

import pytest

from app.core.oauth_problems import OAuthNotPending
from tests.support.workspace_house import workspace_house


@pytest.mark.spec("oauth")
async def test_completing_without_a_pending_authorization_says_so(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        with pytest.raises(OAuthNotPending) as refused:
            await house.act("oauth.complete", name="p", callbackUrl="http://127.0.0.1/cb?code=canary")
        assert "canary" not in str(refused.value.document())
