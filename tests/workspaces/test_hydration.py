"""Hydration: one complete snapshot or none, a way out of a failed workspace, and isolate beside strict."""

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from app.core.problems import ServerNotConnected, ServerNotFound, ShuttingDown, StoreUnavailable
from app.workspaces import hydration
from app.workspaces.hydration import back_off_s
from tests.support.scripted_http import Reply, result, scripted_http, stream
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("hydration")

DISCOVERED: dict[str, Any] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
DOWN = Reply(status=503)
FOUND = '{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
GONE = {"transport": "stdio", "command": "/nonexistent/server"}


def states(listed: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: server["state"] for name, server in listed.items()}


def tasks_of(house: WorkspaceHouse) -> Any:
    """Return the tasks of the workspace's group."""
    group: Any = house.workspace().group
    return group._tasks


async def stored(tmp_path: Path, *definitions: dict[str, Any]) -> None:
    """Leave these attachments in the database of a daemon that has ended."""
    async with workspace_house(tmp_path) as house:
        for definition in definitions:
            await house.act("attach", server=definition)


async def test_a_restart_brings_attachments_defaults_and_tombstones_back(tmp_path: Path) -> None:
    async with scripted_http() as peer:
        defaults = {"d": http(peer, "d"), "e": http(peer, "e")}
        async with workspace_house(tmp_path, defaults=defaults) as house:
            await house.act("attach", server=http(peer))
            await house.act("detach", name="d")
            await house.act("replace", server=http(peer, "e", tools=[]))
            await house.act("attach", "other", server=http(peer, "q"))
            before = [await house.act("list"), await house.act("list", "other")]
        async with workspace_house(tmp_path, defaults=defaults) as house:
            assert [await house.act("list"), await house.act("list", "other")] == before
            assert before[0]["detached"] == ["d"]
            assert [each["source"] for each in before[0]["servers"]] == ["workspace", "workspace"]
            await house.act("restore", name="d")
            await house.act("restore", name="e")
            assert {name: each["source"] for name, each in (await house.listed()).items()} == {
                "d": "service",
                "e": "service",
                "p": "workspace",
            }
            assert list(await house.rows()) == ["p"]


async def test_one_failing_server_fails_the_workspace_and_every_candidate_closes(tmp_path: Path) -> None:
    async with scripted_http() as peer, scripted_http() as later:
        await stored(tmp_path, http(peer), http(later, "q"))
        later.answers["server/discover"] = DOWN
        async with workspace_house(tmp_path) as house:
            listed = await house.listed()
            assert states(listed) == {"p": "unavailable", "q": "unavailable"}
            assert listed["q"]["problem"]["code"] == "server-unavailable"
            assert listed["p"]["problem"]["code"] == "server-not-connected"
            assert listed["p"]["problem"]["cause"] == listed["q"]["problem"]
            assert house.connector.unretired() == []
            with pytest.raises(ServerNotConnected) as refused:
                await house.workspace().lease("p", "op-1")
            assert refused.value.facts["cause"] == listed["p"]["problem"]
            with pytest.raises(ServerNotFound):
                await house.workspace().lease("nobody", "op-1")


async def test_every_server_is_discovered_at_once(tmp_path: Path) -> None:
    async with scripted_http() as one, scripted_http() as two:
        await stored(tmp_path, http(one), http(two, "q"))
        asked = {each.origin: anyio.Event() for each in (one, two)}

        def answer_once_the_other_is_asked(own: str, other: str) -> Any:
            def script(_: Any) -> Reply:
                asked[own].set()
                return stream(asked[other], f"data: {FOUND}\n\n")

            return script

        one.answers["server/discover"] = answer_once_the_other_is_asked(one.origin, two.origin)
        two.answers["server/discover"] = answer_once_the_other_is_asked(two.origin, one.origin)
        async with workspace_house(tmp_path) as house:
            with anyio.fail_after(10):
                assert states(await house.listed()) == {"p": "connected", "q": "connected"}


async def test_detaching_the_culprit_of_a_failed_workspace_brings_the_rest_up(tmp_path: Path) -> None:
    defaults = {"bad": {"name": "bad", **GONE}}
    async with scripted_http() as peer, workspace_house(tmp_path, defaults=defaults) as house:
        assert states(await house.listed()) == {"bad": "unavailable"}
        await house.act("detach", name="bad")
        await house.act("attach", server=http(peer))
        assert states(await house.listed()) == {"p": "connected"}
        (await house.workspace().lease("p", "op-1")).release()


async def test_an_action_in_a_failed_workspace_judges_its_own_server_only(tmp_path: Path) -> None:
    defaults = {"bad": {"name": "bad", **GONE}}
    async with scripted_http() as peer, workspace_house(tmp_path, defaults=defaults) as house:
        await house.listed()
        answered = await house.act("attach", server=http(peer))
        assert (answered["status"], answered["server"]["state"]) == (201, "connected")
        assert states(await house.listed()) == {"bad": "unavailable", "p": "unavailable"}
        assert list(await house.rows()) == ["p"]
        assert house.connector.unretired() == []
        await house.act("detach", name="bad")
        assert states(await house.listed()) == {"p": "connected"}


@pytest.mark.spec("lifecycle")
async def test_a_change_that_was_being_prepared_commits_after_a_hydration_that_began_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_http() as bad, scripted_http() as peer:
        healthy = stream(hydrating := anyio.Event(), f"data: {FOUND}\n\n")
        bad.answers["server/discover"] = DOWN
        peer.answers["server/discover"] = stream(preparing := anyio.Event(), f"data: {FOUND}\n\n")
        async with workspace_house(tmp_path, defaults={"bad": http(bad, "bad")}) as house:
            await house.listed()
            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:

                    async def attach() -> None:
                        await house.act("attach", server=http(peer))

                    group.start_soon(attach)
                    await peer.has_seen(1)
                    bad.answers["server/discover"] = healthy
                    monkeypatch.setattr(house.workspace().hydration, "_due", 0.0)
                    group.start_soon(house.listed)
                    await bad.has_seen(2)
                    preparing.set()
                    while not house.connector.opened:
                        await anyio.sleep(0.005)
                    await anyio.wait_all_tasks_blocked()
                    assert await house.rows() == {}
                    hydrating.set()
            assert states(await house.listed()) == {"bad": "connected", "p": "connected"}


async def test_a_failed_hydration_is_tried_again_by_the_first_use_after_back_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_http() as peer:
        await stored(tmp_path, http(peer))
        peer.answers["server/discover"] = DOWN
        async with workspace_house(tmp_path) as house:
            await house.listed()
            tried = len(peer.of("server/discover"))
            assert states(await house.listed()) == {"p": "unavailable"}
            assert len(peer.of("server/discover")) == tried
            peer.answers["server/discover"] = result(
                {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            )
            monkeypatch.setattr(house.workspace().hydration, "_due", 0.0)
            assert states(await house.listed()) == {"p": "connected"}


async def test_concurrent_first_uses_share_one_hydration_and_a_leaving_one_cancels_nothing(
    tmp_path: Path,
) -> None:
    async with scripted_http() as peer:
        await stored(tmp_path, http(peer))
        gate, seen = anyio.Event(), len(peer.of("server/discover"))
        body = '{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}'
        peer.answers["server/discover"] = stream(gate, f"data: {body}\n\n")
        async with workspace_house(tmp_path) as house:
            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    for _ in range(3):
                        group.start_soon(house.listed)
                    with anyio.move_on_after(0.05) as leaving:
                        await house.listed()
                    assert leaving.cancelled_caught
                    gate.set()
            assert states(await house.listed()) == {"p": "connected"}
        assert len(peer.of("server/discover")) == seen + 1


async def test_isolate_publishes_what_failed_as_unavailable_and_tries_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hydration, "BACK_OFF_FIRST_S", 0.01)
    monkeypatch.setattr(hydration, "PATIENCE_S", 10.0)
    async with scripted_http() as peer, scripted_http() as later:
        await stored(tmp_path, http(peer), http(later, "q"))
        healthy = later.answers["server/discover"]
        later.answers["server/discover"] = DOWN
        async with workspace_house(tmp_path, environment={"PLURNK_HYDRATION": "isolate"}) as house:
            assert states(await house.listed()) == {"p": "connected", "q": "unavailable"}
            later.answers["server/discover"] = healthy
            with anyio.fail_after(10):
                while states(await house.listed())["q"] != "connected":
                    await anyio.sleep(0.01)
                while tasks_of(house):  # the retrying is over
                    await anyio.sleep(0.01)
            assert len(house.connector.unretired()) == 2


async def test_isolate_lets_the_others_serve_while_one_is_silent_and_takes_it_when_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hydration, "PATIENCE_S", 0.05)
    gate = anyio.Event()
    async with scripted_http() as peer, scripted_http() as silent:
        await stored(tmp_path, http(peer), http(silent, "q"))
        silent.answers["server/discover"] = stream(gate, f"data: {FOUND}\n\n")
        async with workspace_house(tmp_path, environment={"PLURNK_HYDRATION": "isolate"}) as house:
            with anyio.fail_after(10):
                while (listed := states(await house.listed()))["p"] != "connected":
                    await anyio.sleep(0.01)  # a busy machine: both were late
                assert listed == {"p": "connected", "q": "preparing"}
                arrived: list[str] = []

                async def use_the_silent_one() -> None:
                    snapshot = await house.workspace().ready("q")
                    arrived.append(snapshot.servers["q"].state)

                async with anyio.create_task_group() as group:
                    group.start_soon(use_the_silent_one)
                    await house.workspace().ready("p")
                    await anyio.lowlevel.checkpoint()
                    assert not arrived
                    gate.set()
            assert arrived == ["connected"]
            assert states(await house.listed()) == {"p": "connected", "q": "connected"}
            assert len(house.connector.unretired()) == 2


async def test_what_comes_late_and_was_detached_meanwhile_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hydration, "PATIENCE_S", 0.0)
    gate = anyio.Event()
    async with scripted_http() as silent:
        await stored(tmp_path, http(silent))
        silent.answers["server/discover"] = stream(gate, f"data: {FOUND}\n\n")
        async with workspace_house(tmp_path, environment={"PLURNK_HYDRATION": "isolate"}) as house:
            assert states(await house.listed()) == {"p": "preparing"}
            await house.act("detach", name="p")
            gate.set()
            with anyio.fail_after(10):
                while tasks_of(house):
                    await anyio.sleep(0.01)
            assert await house.listed() == {}
            assert not house.connector.unretired()


async def test_isolate_gives_up_retrying_a_server_that_somebody_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hydration, "BACK_OFF_FIRST_S", 0.01)
    async with scripted_http() as peer:
        await stored(tmp_path, http(peer))
        peer.answers["server/discover"] = DOWN
        async with workspace_house(tmp_path, environment={"PLURNK_HYDRATION": "isolate"}) as house:
            await house.listed()
            await house.act("detach", name="p")
            seen = len(peer.seen)
            with anyio.fail_after(10):
                while tasks_of(house):
                    await anyio.sleep(0.01)
            assert len(peer.seen) <= seen + 1
            assert await house.listed() == {}


@pytest.mark.spec("state")
async def test_a_row_that_no_longer_validates_fails_only_its_workspace(tmp_path: Path) -> None:
    async with scripted_http() as peer:
        await stored(tmp_path, http(peer))
        async with workspace_house(tmp_path) as house:
            await house.store._store._database.write(  # a row of another release, which no door would write
                lambda connection: connection.execute(
                    'UPDATE server_attachments SET definition = \'{"name":"p"}\''
                )
            )
            listed = await house.listed()
            assert listed["p"]["state"] == "unavailable"
            assert listed["p"]["problem"]["code"] == "definition-invalid"
            await house.act("attach", "other", server=http(peer))
            await house.act("replace", server=http(peer))
            assert states(await house.listed()) == {"p": "connected"}


async def test_an_unreadable_store_fails_the_use_and_the_next_one_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workspace_house(tmp_path) as house:
        load = house.store.load

        async def unreadable(_workspace: str) -> Any:
            raise StoreUnavailable("it is locked")

        monkeypatch.setattr(house.store, "load", unreadable)
        with pytest.raises(StoreUnavailable):
            await house.act("list")
        monkeypatch.setattr(house.store, "load", load)
        monkeypatch.setattr(house.workspace().hydration, "_due", 0.0)
        assert await house.listed() == {}


async def test_the_state_shows_servers_as_preparing_while_they_hydrate(tmp_path: Path) -> None:
    async with scripted_http() as peer:
        await stored(tmp_path, http(peer))
        gate = anyio.Event()
        peer.answers["tools/list"] = stream(
            gate, 'data: {"jsonrpc":"2.0","id":$id,"result":{"tools":[]}}\n\n'
        )
        async with workspace_house(tmp_path) as house:
            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    group.start_soon(house.listed)
                    while not house.workspace().state.snapshot()["servers"]:
                        await anyio.sleep(0.005)
                    assert _live_state(house) == "preparing"
                    gate.set()
            assert _live_state(house) == "connected"


def _live_state(house: WorkspaceHouse) -> Any:
    servers: Any = house.workspace().state.snapshot()["servers"]
    return servers["p"]["state"]


async def test_the_end_of_the_daemon_ends_a_running_hydration(tmp_path: Path) -> None:
    async with scripted_http() as peer:
        await stored(tmp_path, http(peer))
        peer.answers["tools/list"] = stream(anyio.Event())
        with anyio.fail_after(10):
            async with workspace_house(tmp_path) as house, anyio.create_task_group() as group:
                group.start_soon(_expect_shutting_down, house)
                while not peer.of("tools/list")[1:]:
                    await anyio.sleep(0.005)
                await house.manager.shut_down()
            assert house.connector.unretired() == []


async def _expect_shutting_down(house: WorkspaceHouse) -> None:
    with pytest.raises(ShuttingDown):
        await house.listed()


def test_back_off_doubles_to_a_minute_and_has_jitter() -> None:
    for attempt in range(40):
        nominal = min(60.0, 2.0**attempt)
        assert nominal <= back_off_s(attempt) <= min(60.0, nominal * 1.5)
    assert len({back_off_s(0) for _ in range(20)}) > 1
