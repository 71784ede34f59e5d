"""What a workspace shows of a connection that was lost or listed anew, also in the middle of a commit."""

import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.catalog import ServerCatalog
from app.core.connection_state import ConnectionState
from app.core.problems import ServerUnavailable
from app.core.snapshot import ServerState
from app.workspaces import reports
from tests.support.eventually import eventually
from tests.support.gated_connection import catalog, tool_entry
from tests.support.operations_house import operations_house
from tests.support.peers.programs import scripted_definition
from tests.support.processes import peers_of
from tests.support.scripted_http import ECHO, Script, result, scripted_http, stream
from tests.support.subscriptions import changed, discovered, open_stream
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("lifecycle", "connection")

LOST = ServerUnavailable("p", "stdio", "it ended")


async def test_a_connection_lost_while_the_store_writes_is_published_as_lost(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        await house.workspace().ready()
        house.store.before_write = anyio.Event()
        others, answered = set(peers_of(os.getpid())), list[Any]()

        async def attach() -> None:
            answered.append(await house.act("attach", server=scripted_definition("p")))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(attach)
                await house.store.writing.wait()
                (child,) = set(peers_of(os.getpid())) - others
                os.kill(child, signal.SIGKILL)
                while house.connector.opened[0].state is ConnectionState.READY:
                    await anyio.sleep(0.005)
                house.store.before_write.set()
        assert answered[0]["status"] == 201
        assert answered[0]["server"]["state"] == "unavailable"
        assert answered[0]["server"]["problem"]["signal"] == "SIGKILL"
        assert list(await house.rows()) == ["p"]
        with anyio.fail_after(20):
            while _state(house) is not ServerState.CONNECTED:
                await anyio.sleep(0.01)
        assert house.connector.unretired() == house.workspace().connections()


@pytest.mark.parametrize("mode", ["strict", "isolate"])
@pytest.mark.spec("hydration")
async def test_a_connection_lost_while_the_others_are_opened_is_not_published(
    tmp_path: Path, mode: str
) -> None:
    gate = anyio.Event()
    found = '{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
    slow = stream(gate, f"data: {found}\n\n")
    async with scripted_http({"server/discover": slow}) as peer:
        defaults = {"p": scripted_definition("p"), "slow": http(peer, "slow")}
        environment = {"PLURNK_HYDRATION": mode}
        async with workspace_house(tmp_path, defaults=defaults, environment=environment) as house:
            others = set(peers_of(os.getpid()))
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(house.listed)
                    await eventually(lambda: house.connector.opened)
                    (child,) = set(peers_of(os.getpid())) - others
                    os.kill(child, signal.SIGKILL)
                    while house.connector.opened[0].state is ConnectionState.READY:
                        await anyio.sleep(0.005)
                    gate.set()
                listed = await house.listed()
                while listed["slow"]["state"] == "preparing":  # where others need not wait for it
                    await anyio.sleep(0.005)
                    listed = await house.listed()
            assert listed["p"]["state"] == "unavailable"
            assert listed["p"]["problem"]["signal"] == "SIGKILL"
            assert listed["slow"]["state"] == ("connected" if mode == "isolate" else "unavailable")
            await eventually(lambda: house.connector.unretired() == house.workspace().connections())


@pytest.mark.spec("hydration", "watch")
async def test_a_catalog_that_changed_while_the_others_were_opened_is_the_one_that_is_published(
    tmp_path: Path,
) -> None:
    gate, change = anyio.Event(), anyio.Event()
    found = '{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
    slow: dict[str, Script] = {"server/discover": stream(gate, f"data: {found}\n\n")}
    told: dict[str, Script] = {
        "server/discover": discovered(),
        "subscriptions/listen": open_stream(change, changed("tools")),
        "tools/list": [result({"tools": [ECHO]}), result({"tools": [{**ECHO, "name": "new"}]})],
    }
    async with scripted_http(slow) as slow_peer, scripted_http(told) as peer:
        defaults = {"p": http(peer), "slow": http(slow_peer, "slow")}
        async with workspace_house(tmp_path, defaults=defaults) as house:
            with anyio.fail_after(20):
                async with anyio.create_task_group() as group:
                    group.start_soon(house.listed)
                    await eventually(lambda: [each.server for each in house.connector.opened] == ["p"])
                    change.set()
                    (connection,) = house.connector.opened
                    await eventually(lambda: [each.name for each in connection.catalog.tools] == ["new"])
                    gate.set()
            listed = await house.listed()
            assert (listed["p"]["state"], listed["p"]["tools"]) == ("connected", ["new"])


async def test_a_bug_in_a_report_does_not_end_the_task_that_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with reporting(catalog()) as (house, connection, report):

        def bug(*_: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(house.workspace, "show", bug)
        connection.lose(LOST)
        report(connection)


@asynccontextmanager
async def reporting(old: ServerCatalog) -> AsyncGenerator[Any]:
    """Run a workspace with one server of this catalog, and give what its connection reports with."""
    async with operations_house({"p": old}) as house:
        assert house.connector.on_change is not None
        yield house, house.peer, house.connector.on_change


@pytest.mark.spec("policy")
async def test_a_new_catalog_is_published_whole_and_one_that_breaks_policy_leaves_the_old_one() -> None:
    async with reporting(catalog([tool_entry("old")])) as (house, connection, report):
        connection.catalog = catalog([tool_entry("new")])
        report(connection)
        published = house.workspace.snapshot.servers["p"].published
        assert published is not None
        assert (list(published.registry.tools), published.catalog) == (["new"], connection.catalog)
        connection.catalog = catalog([tool_entry("newest"), tool_entry("newest")])
        report(connection)
        server = house.workspace.snapshot.servers["p"]
        assert (server.published, server.is_connected) == (published, True)
        assert server.problem is not None
        assert server.problem.code == "catalog-invalid"


async def test_a_connection_that_was_replaced_reports_in_vain() -> None:
    async with reporting(catalog([tool_entry("old")])) as (house, connection, report):
        await house.replace("p", catalog([tool_entry("other")]), {})
        shown = house.workspace.snapshot
        connection.lose(LOST)
        report(connection)
        assert house.workspace.snapshot is shown


def _state(house: WorkspaceHouse) -> ServerState:
    return house.workspace().snapshot.servers["p"].state


@pytest.mark.spec("watch")
async def test_a_refresh_that_failed_is_shown_and_what_was_published_goes_on_serving() -> None:
    async with reporting(catalog([tool_entry("old")])) as (house, connection, report):
        before = house.workspace.snapshot.servers["p"].published
        connection.problem = LOST
        report(connection)
        server = house.workspace.snapshot.servers["p"]
        assert (server.is_connected, server.problem, server.published) == (True, LOST, before)
        (await house.workspace.lease("p", "op-1")).release()
        connection.problem = None
        report(connection)
        assert house.workspace.snapshot.servers["p"].problem is None


async def test_a_bug_while_catching_up_leaves_what_is_durable_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with reporting(catalog([tool_entry("old")])) as (house, _, _):

        def bug(*_: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(reports, "reported", bug)
        await house.replace("p", catalog([tool_entry("new")]), {})
        published = house.workspace.snapshot.servers["p"].published
        assert list(published.registry.tools) == ["new"]
