"""The end of a workspace in the middle of something: what has begun completes, and nothing is left. SPEC §shutdown."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.problem import Problem
from app.core.problems import ShuttingDown
from app.workspaces import hydration
from tests.support.eventually import eventually
from tests.support.gated_connection import catalog, tool_entry
from tests.support.operations_house import operations_house
from tests.support.processes import is_alive
from tests.support.scripted_http import HANG, Reply, scripted_http, stream
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("shutdown", "lifecycle")

FOUND = '{"jsonrpc":"2.0","id":$id,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'


@pytest.mark.parametrize("kind", ["attach", "replace", "detach", "reconnect"])
async def test_a_commit_that_was_writing_completes_and_its_connection_closes(
    tmp_path: Path, kind: str
) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        members: dict[str, dict[str, Any]] = {
            "attach": {"server": http(peer, "q")},
            "replace": {"server": http(peer, tools=[])},
            "detach": {"name": "p"},
            "reconnect": {"name": "p"},
        }
        house.store.writing, house.store.before_write = anyio.Event(), anyio.Event()
        answered = list[Any]()

        async def change() -> None:
            answered.append(await house.act(kind, **members[kind]))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(change)
                if kind == "reconnect":  # it writes nothing
                    await eventually(lambda: answered)
                else:
                    await house.store.writing.wait()
                group.start_soon(house.manager.shut_down)
                await anyio.wait_all_tasks_blocked()
                house.store.before_write.set()
        assert answered[0]["status"] in {200, 201}
        assert list(await house.rows()) == {"attach": ["p", "q"], "detach": []}.get(kind, ["p"])
        assert house.connector.unretired() == []


async def test_a_commit_in_a_failed_workspace_completes_and_hydrates_nothing(tmp_path: Path) -> None:
    defaults = {"bad": {"name": "bad", "transport": "stdio", "command": "/nonexistent/server"}}
    async with scripted_http() as peer, workspace_house(tmp_path, defaults=defaults) as house:
        await house.listed()
        house.store.before_write = anyio.Event()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(_attach, house, http(peer))
                await house.store.writing.wait()
                group.start_soon(house.manager.shut_down)
                await anyio.wait_all_tasks_blocked()
                house.store.before_write.set()
        assert list(await house.rows()) == ["p"]
        assert house.connector.unretired() == []


async def _attach(house: WorkspaceHouse, definition: dict[str, Any]) -> None:
    assert (await house.act("attach", server=definition))["status"] == 201


async def test_a_preparation_that_is_under_way_ends_and_commits_nothing(tmp_path: Path) -> None:
    async with (
        scripted_http({"server/discover": stream(anyio.Event())}) as peer,
        workspace_house(tmp_path) as house,
    ):
        await house.workspace().ready()
        refused = list[str]()

        async def attach() -> None:
            try:
                await house.act("attach", server=http(peer))
            except Problem as problem:
                refused.append(problem.code)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(attach)
                await peer.has_seen(1)
                await house.manager.shut_down()
        assert refused == ["shutting-down"]
        assert await house.rows() == {}
        assert house.connector.unretired() == []


@pytest.mark.parametrize("mode", ["strict", "isolate"])
@pytest.mark.spec("hydration")
async def test_a_running_hydration_ends_and_closes_what_it_opened(tmp_path: Path, mode: str) -> None:
    hanging = Reply(raw=[HANG])
    async with scripted_http() as well, scripted_http({"server/discover": hanging}) as bad:
        defaults = {"well": http(well, "well"), "bad": http(bad, "bad")}
        environment = {"PLURNK_HYDRATION": mode}
        async with workspace_house(tmp_path, defaults=defaults, environment=environment) as house:
            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    group.start_soon(_refused, house)
                    await eventually(lambda: house.connector.opened)
                    await bad.has_seen(1)
                    await house.manager.shut_down()
            assert house.connector.unretired() == []


@pytest.mark.spec("hydration")
async def test_what_arrives_while_a_hydration_closes_what_it_opened_is_closed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hydration, "PATIENCE_S", 10.0)
    arrives = anyio.Event()
    slow = stream(arrives, f"data: {FOUND}\n\n")
    async with scripted_http() as well, scripted_http({"server/discover": slow}) as late:
        defaults = {"well": http(well, "well"), "late": http(late, "late")}
        environment = {"PLURNK_HYDRATION": "isolate"}
        async with workspace_house(tmp_path, defaults=defaults, environment=environment) as house:
            opened = house.connector.opened
            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    group.start_soon(_refused, house)
                    await eventually(lambda: opened)
                    await late.has_seen(1)
                    let = _closing_slowly(opened)
                    group.start_soon(house.manager.shut_down)
                    await anyio.wait_all_tasks_blocked()
                    arrives.set()
                    await eventually(lambda: len(opened) == 2)
                    let.set()
            assert house.connector.unretired() == []


@pytest.mark.parametrize("mode", ["strict", "isolate"])
@pytest.mark.spec("hydration")
async def test_a_child_that_is_being_prepared_is_gone_when_the_end_is_over(tmp_path: Path, mode: str) -> None:
    told = tmp_path / "pid"
    program = {"command": "/bin/sh", "args": ["-c", f"echo $$ >{told}; cat >{tmp_path}/asked"]}
    defaults = {"p": {"name": "p", "transport": "stdio", **program}}
    environment = {"PLURNK_HYDRATION": mode}
    async with workspace_house(tmp_path, defaults=defaults, environment=environment) as house:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(_refused_or_preparing, house)
                await eventually(lambda: told.exists() and told.read_text().endswith("\n"))
                assert is_alive(pid := int(told.read_text()))
                await house.manager.shut_down()
                assert not is_alive(pid)


async def _refused_or_preparing(house: WorkspaceHouse) -> None:
    """List at the end: a busy machine may be past the patience of ``isolate``."""
    with suppress(ShuttingDown):
        await house.listed()


async def _refused(house: WorkspaceHouse) -> None:
    with pytest.raises(Problem) as refused:
        await house.listed()
    assert refused.value.code == "shutting-down"


async def test_a_connection_that_is_still_closing_is_waited_for() -> None:
    async with operations_house({"p": catalog([tool_entry("get")])}) as house:
        let = _closing_slowly(house.connector.opened)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(house.detach, "p")
                await eventually(lambda: len(house.workspace.retirements))
                group.start_soon(house.manager.shut_down)
                await anyio.wait_all_tasks_blocked()
                let.set()
        assert house.peer.is_retired


@pytest.mark.spec("hydration")
async def test_what_an_idle_workspace_is_closing_is_waited_for() -> None:
    async with operations_house({name: catalog() for name in ("p", "q")}) as house:
        let = _closing_slowly(house.connector.opened)
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                await house.workspace.go_idle(0)
                await anyio.wait_all_tasks_blocked()
                # All at once: not one after the other.
                assert len(house.workspace.retirements) == 2
                group.start_soon(house.manager.shut_down)
                await anyio.wait_all_tasks_blocked()
                let.set()
        assert all(connection.is_retired for connection in house.connector.opened)


def _closing_slowly(connections: Sequence[Any]) -> anyio.Event:
    """Have each of the connections close only once the returned event is set."""
    let = anyio.Event()

    def slow(close: Callable[[], Awaitable[str | None]]) -> Any:
        async def retire() -> str | None:
            await let.wait()
            return await close()

        return retire

    for connection in connections:
        connection.retire = slow(connection.retire)
    return let
