"""The manager: workspaces on first use, isolated, idle ones retired, all closed at the end."""

from pathlib import Path

import anyio
import pytest
import structlog

from app.core.oauth_problems import USED_UP
from app.core.problems import ShuttingDown, TooMany
from app.workspaces import manager
from tests.support.board_house import ended
from tests.support.gated_connection import catalog, tool_entry
from tests.support.operations_house import operations_house
from tests.support.scripted_http import scripted_http, stream
from tests.support.workspace_house import http, workspace_house

pytestmark = pytest.mark.spec("hydration")


async def test_a_workspace_is_the_same_object_on_every_use(tmp_path: Path) -> None:
    async with workspace_house(tmp_path) as house:
        assert house.workspace("a") is house.workspace("a")
        assert house.workspace("a") is not house.workspace("b")


@pytest.mark.spec("security")
async def test_workspaces_with_one_server_name_share_nothing(tmp_path: Path) -> None:
    async with scripted_http() as one, scripted_http() as two, workspace_house(tmp_path) as house:
        await house.act("attach", "a", server=http(one))
        await house.act("attach", "b", server=http(two, tools=[]))
        await house.act("detach", "a", name="p")
        assert await house.listed("a") == {}
        assert (await house.listed("b"))["p"]["state"] == "connected"
        assert await house.manager.names() == ["a", "b"]
        assert len(house.connector.unretired()) == 1


@pytest.mark.spec("limits")
async def test_a_workspace_beyond_the_limit_is_refused_unless_an_unused_one_can_go(tmp_path: Path) -> None:
    async with (
        scripted_http() as peer,
        workspace_house(tmp_path, environment={"PLURNK_MAX_WORKSPACES": "2"}) as house,
    ):
        await house.act("attach", "a", server=http(peer))
        house.workspace("b")
        await house.act("list", "c")
        await house.act("attach", "d", server=http(peer))
        with pytest.raises(TooMany) as refused:
            house.workspace("e")
        assert refused.value.facts == {"limit": 2, "setting": "PLURNK_MAX_WORKSPACES"}
        await house.act("detach", "a", name="p")
        assert await house.listed("e") == {}
        assert len(house.connector.unretired()) == 1


async def test_an_idle_workspace_retires_its_connections_and_the_next_use_hydrates_again(
    tmp_path: Path,
) -> None:
    async with (
        scripted_http() as peer,
        workspace_house(tmp_path, environment={"PLURNK_WORKSPACE_IDLE": "100"}) as house,
    ):
        await house.act("attach", server=http(peer))
        with anyio.fail_after(10):
            while house.connector.unretired():
                await anyio.sleep(0.01)
        assert house.workspace().state.snapshot()["servers"] == {}
        assert (await house.listed())["p"]["state"] == "connected"


@pytest.mark.spec("limits")
async def test_an_idle_workspace_that_holds_nothing_is_forgotten(tmp_path: Path) -> None:
    async with (
        scripted_http() as peer,
        workspace_house(tmp_path, environment={"PLURNK_WORKSPACE_IDLE": "50"}) as house,
    ):
        await house.act("attach", "detached", server=http(peer))
        await house.act("detach", "detached", name="p")
        await house.act("attach", "attached", server=http(peer))
        await house.act("list", "listed")
        house.workspace("looked-at")
        forgotten = house.workspace("listed")
        with house.workspace("used").in_use(), anyio.fail_after(10):
            while house.manager.count > 1 or forgotten.owner.is_alive:
                await anyio.sleep(0.01)
            assert house.workspace("used") is house.workspace("used")
            assert house.connector.unretired() == []
            assert await house.manager.names() == ["attached", "used"]
        assert (await house.listed("attached"))["p"]["state"] == "connected"


@pytest.mark.spec("calls", "oauth")
async def test_what_an_idle_workspace_remembers_keeps_it_until_it_is_over(tmp_path: Path) -> None:
    async with workspace_house(tmp_path, environment={"PLURNK_WORKSPACE_IDLE": "20"}) as house:
        calling, signing_in = house.workspace("calling"), house.workspace("signing-in")
        board = house.host.boards.of(calling)
        board._settled.keep(ended())
        signing_in.pending._remember("p", USED_UP)
        # Used last, it is idle last.
        await house.act("list", "other")
        with anyio.fail_after(10):
            while house.manager.count > 2:
                await anyio.sleep(0.01)
        assert (house.workspace("calling"), house.workspace("signing-in")) == (calling, signing_in)
        board.forget()
        signing_in.pending.clear()
        with anyio.fail_after(10):
            while house.manager.count:
                await anyio.sleep(0.01)
        assert house.host.boards._boards == {}


async def test_an_idle_time_of_0_retires_nothing(tmp_path: Path) -> None:
    async with (
        scripted_http() as peer,
        workspace_house(tmp_path, environment={"PLURNK_WORKSPACE_IDLE": "0"}) as house,
    ):
        await house.act("attach", server=http(peer))
        await anyio.sleep(0.1)
        assert len(house.connector.unretired()) == 1
        assert house.workspace().hydration.is_done


async def test_a_workspace_in_use_is_not_idle(tmp_path: Path) -> None:
    async with (
        scripted_http() as peer,
        workspace_house(tmp_path, environment={"PLURNK_WORKSPACE_IDLE": "40"}) as house,
    ):
        await house.act("attach", server=http(peer))
        with house.workspace().in_use():
            await anyio.sleep(0.2)
            assert len(house.connector.unretired()) == 1
        lease = await house.workspace().lease("p", "op-1")
        await anyio.sleep(0.2)
        assert lease.connection in house.connector.unretired()
        lease.release()


async def test_eager_hydration_brings_every_stored_workspace_up_without_a_use(tmp_path: Path) -> None:
    async with scripted_http() as peer:
        async with workspace_house(tmp_path) as house:
            for name in ("a", "b", "c"):
                await house.act("attach", name, server=http(peer))
        async with workspace_house(tmp_path, environment={"PLURNK_HYDRATE": "eager"}) as house:
            with anyio.fail_after(10):
                while len(house.connector.unretired()) < 3:
                    await anyio.sleep(0.01)


async def test_eager_hydration_is_bounded_and_holds_up_neither_the_start_nor_another_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "EAGER_AT_ONCE", 2)
    async with scripted_http() as peer:
        async with workspace_house(tmp_path) as house:
            for name in ("a", "b", "c"):
                await house.act("attach", name, server=http(peer))
        gate, seen = anyio.Event(), len(peer.of("server/discover"))
        body = '{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
        peer.answers["server/discover"] = stream(gate, f"data: {body}\n\n")
        with anyio.fail_after(10):
            async with workspace_house(tmp_path, environment={"PLURNK_HYDRATE": "eager"}) as house:
                while len(peer.of("server/discover")) < seen + 2:
                    await anyio.sleep(0.005)
                assert await house.listed("unused") == {}
                assert len(peer.of("server/discover")) == seen + 2
                gate.set()
                while len(house.connector.unretired()) < 3:
                    await anyio.sleep(0.005)


async def test_lazy_hydration_waits_for_the_first_use(tmp_path: Path) -> None:
    async with scripted_http() as peer:
        async with workspace_house(tmp_path) as house:
            await house.act("attach", server=http(peer))
        async with workspace_house(tmp_path) as house:
            await anyio.sleep(0.05)
            assert house.connector.opened == []
            await house.listed()
            assert len(house.connector.opened) == 1


@pytest.mark.spec("shutdown")
async def test_the_end_closes_every_connection_and_takes_up_nothing_new(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        for name in ("a", "b"):
            await house.act("attach", name, server=http(peer))
        workspace = house.workspace("a")
        await house.manager.shut_down()
        assert house.connector.unretired() == []
        with pytest.raises(ShuttingDown):
            house.workspace("c")
        with pytest.raises(ShuttingDown):
            await house.act("list", "a")
        with pytest.raises(ShuttingDown):
            workspace.group  # noqa: B018 the property raises


@pytest.mark.spec("shutdown")
async def test_every_connection_is_closed_and_each_failure_is_one_log_line(tmp_path: Path) -> None:
    servers = {name: catalog([tool_entry("get")]) for name in ("a", "b", "c")}
    async with operations_house(servers) as house:
        for connection in house.connector.opened:
            if connection.server != "b":
                connection.close_failure = f"{connection.server} would not end"
        with structlog.testing.capture_logs() as logged:
            await house.manager.shut_down()
        assert all(connection.is_retired for connection in house.connector.opened)
    failures = [line for line in logged if line["event"] == "close-failed"]
    assert sorted((line["workspace"], line["server"], line["reason"]) for line in failures) == [
        ("w", "a", "a would not end"),
        ("w", "c", "c would not end"),
    ]
