"""connector.py: what the operator's limits, and what the daemon can do, make of every connection."""

import os
import signal
from pathlib import Path

import anyio
import pytest

from app.connections.connector import Connector
from app.connections.recovery import Backoff
from app.core.connection_state import ConnectionState
from app.core.definitions import parse_definition
from app.core.masking import Mask
from app.core.problems import CatalogInvalid, ServerUnavailable
from app.core.telemetry import Telemetry
from app.ports import Connection, Target
from app.settings import Settings
from tests.support.peers.programs import http_definition, scripted_definition
from tests.support.processes import peers_of
from tests.support.scripted_http import scripted_http, stream
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
async def test_exactly_the_capabilities_that_work_are_declared(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        for seen in peer.seen:
            assert seen.params["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {
                "elicitation": {"form": {}, "url": {}},
                "extensions": {"io.modelcontextprotocol/tasks": {}},
            }


@pytest.mark.spec("observe")
async def test_every_preparation_is_counted_with_its_end_and_no_connection_for_ever(tmp_path: Path) -> None:
    silent = stream(anyio.Event())
    async with scripted_http() as peer, scripted_http({"server/discover": silent}) as mute:
        telemetry = Telemetry()
        (gauge,) = telemetry.measures.gauges
        connector = Connector(Settings(), {}, Mask(), telemetry=telemetry)

        async def open_one(definition: dict[str, object]) -> Connection:
            target = Target("w", parse_definition(definition), "workspace", True)
            return await connector.open(target, group, lambda _: None)

        async with anyio.create_task_group() as group:
            connection = await open_one(http(peer))
            assert gauge.read()["ready",] == 1
            with pytest.raises(ServerUnavailable):
                await open_one({"name": "q", "transport": "stdio", "command": str(tmp_path / "absent")})
            async with anyio.create_task_group() as leaving:
                leaving.start_soon(open_one, http(mute))
                await mute.has_seen(1)
                assert gauge.read()["preparing",] == 1
                leaving.cancel_scope.cancel()
            await connection.retire()
        await connector.close()
    assert telemetry.measures.preparations.values == {
        ("http", "ok"): 1,
        ("stdio", "server-unavailable"): 1,
        ("http", "cancelled"): 1,
    }
    assert set(gauge.read().values()) == {0}
    assert telemetry.measures.requests.values["http", "cancelled"] == 1


@pytest.mark.spec("limits")
async def test_a_recovery_waits_for_its_place_among_the_preparations() -> None:
    gate, others = anyio.Event(), set(peers_of(os.getpid()))
    found = '{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
    held = stream(gate, f"data: {found}\n\n")
    opened: list[Connection] = []
    backoff = Backoff(first=0.01, ceiling=0.01)
    connector = Connector(Settings.model_validate({"max_preparations": 1}), {}, Mask(), backoff=backoff)
    async with scripted_http({"server/discover": held}) as peer, anyio.create_task_group() as group:

        async def open_one(definition: dict[str, object]) -> None:
            target = Target("w", parse_definition(definition), "workspace", True)
            opened.append(await connector.open(target, group, lambda _: None))

        with anyio.fail_after(20):
            await open_one(scripted_definition("p"))
            (child,) = set(peers_of(os.getpid())) - others
            group.start_soon(open_one, http_definition("slow", peer.url))
            await peer.has_seen(1)
            os.kill(child, signal.SIGKILL)
            await until(opened[0], ConnectionState.RECOVERING)
            await anyio.sleep(0.3)  # thirty times the delay of the back-off
            assert set(peers_of(os.getpid())) - others <= {child}
            gate.set()
            await until(opened[0], ConnectionState.READY)
        for connection in opened:
            await connection.retire()
        await connector.close()


async def until(connection: Connection, state: ConnectionState) -> None:
    """Return once the connection stands there."""
    while connection.state is not state:
        await anyio.sleep(0.005)
