"""connector.py: what the operator's limits, and what the daemon can do, make of every connection."""

from pathlib import Path

import pytest

from app.core.problems import CatalogInvalid
from tests.support.peers.programs import scripted_definition
from tests.support.scripted_http import scripted_http
from tests.support.workspace_house import http, workspace_house


@pytest.mark.spec("limits")
@pytest.mark.parametrize("transport", ["http", "stdio"])
@pytest.mark.parametrize(
    "setting, reason",
    [("PLURNK_MAX_MESSAGE", "message-too-large"), ("PLURNK_MAX_CATALOG_BYTES", "catalog-too-large")],
)
async def test_the_operators_limits_bound_what_a_peer_sends(
    tmp_path: Path, transport: str, setting: str, reason: str
) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path, environment={setting: "40"}) as house:
        with pytest.raises(CatalogInvalid) as refused:
            await house.act("attach", server=http(peer) if transport == "http" else scripted_definition("p"))
        assert refused.value.facts["reason"] == reason


@pytest.mark.spec("calls", "revision")
async def test_no_capability_is_declared_that_does_not_work(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        for seen in peer.seen:
            assert seen.params["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}
