"""What a workspace makes of what its connections report, and of a lease."""

import os
import signal
from functools import partial
from pathlib import Path

import anyio
import pytest

from app.core.problems import ServerNotConnected
from app.core.snapshot import ServerState
from app.workspaces import workspace as module
from tests.support.peers.programs import scripted_definition
from tests.support.processes import peers_of
from tests.support.scripted_http import scripted_http, stream
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("lifecycle")


async def test_a_lease_counts_until_it_is_released_and_releasing_twice_is_harmless(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        workspace = house.workspace()
        lease = await workspace.lease("p", "op-1")
        other = await workspace.lease("p", "op-2")
        assert workspace.gate("p").operations == ("op-1", "op-2")
        lease.release()
        lease.release()
        assert workspace.gate("p").operations == ("op-2",)
        other.release()
        assert lease.server.name == "p"
        assert lease.connection is house.connector.opened[0]


@pytest.mark.spec("connection")
async def test_a_child_that_dies_is_shown_unavailable_and_comes_back_by_itself(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        others = set(peers_of(os.getpid()))
        await house.act("attach", server=scripted_definition("p"))
        workspace, connection = house.workspace(), house.connector.opened[0]
        before = workspace.snapshot.servers["p"].published
        (child,) = set(peers_of(os.getpid())) - others
        os.kill(child, signal.SIGKILL)
        with anyio.fail_after(20):
            while _state(house) is ServerState.CONNECTED:
                await anyio.sleep(0.005)
            lost = workspace.snapshot.servers["p"]
            assert lost.published is before
            assert lost.problem is not None
            assert lost.problem.facts["signal"] == "SIGKILL"
            with pytest.raises(ServerNotConnected):
                await workspace.lease("p", "op-1")
            while _state(house) is not ServerState.CONNECTED:
                await anyio.sleep(0.01)
        (await workspace.lease("p", "op-2")).release()
        assert workspace.connections() == [connection]
        assert workspace.generation("p") == 1


@pytest.mark.spec("connection", "policy")
async def test_a_server_that_comes_back_with_a_catalog_against_policy_keeps_its_old_one(
    tmp_path: Path,
) -> None:
    way = tmp_path / "way"
    way.write_text("good")
    async with workspace_house(tmp_path) as house:
        others = set(peers_of(os.getpid()))
        await house.act("attach", server=scripted_definition("p", f"@{way}"))
        before = house.workspace().snapshot.servers["p"].published
        (child,) = set(peers_of(os.getpid())) - others
        way.write_text("duplicate")
        os.kill(child, signal.SIGKILL)
        with anyio.fail_after(20):
            while _state(house) is ServerState.CONNECTED:
                await anyio.sleep(0.005)
            while _state(house) is not ServerState.CONNECTED:
                await anyio.sleep(0.01)
        server = house.workspace().snapshot.servers["p"]
        assert server.published is before
        assert server.problem is not None
        assert (server.problem.code, server.problem.__traceback__) == ("catalog-invalid", None)
        (await house.workspace().lease("p", "op-1")).release()


def _state(house: WorkspaceHouse) -> ServerState:
    return house.workspace().snapshot.servers["p"].state


@pytest.mark.spec("limits", "lifecycle")
async def test_a_workspace_in_use_forgets_names_that_are_gone_and_none_that_something_is_under_way_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NAMES_KEPT", 2)
    async with scripted_http() as peer, scripted_http() as slow, workspace_house(tmp_path) as house:
        workspace, gate = house.workspace(), anyio.Event()
        with workspace.in_use():
            await house.act("attach", server=http(slow, "again"))
            await house.act("detach", name="again")
            seen = len(slow.of("server/discover"))
            body = (
                '{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
            )
            slow.answers["server/discover"] = stream(gate, f"data: {body}\n\n")
            async with anyio.create_task_group() as group:
                group.start_soon(partial(house.act, "attach", server=http(slow, "again")))
                with anyio.fail_after(5):
                    while len(slow.of("server/discover")) == seen:
                        await anyio.sleep(0.005)
                for number in range(6):
                    await house.act("attach", server=http(peer, f"gone-{number}"))
                    await house.act("detach", name=f"gone-{number}")
                assert len(workspace._gates) <= 3
                gate.set()
        assert list(await house.listed()) == ["again"]
