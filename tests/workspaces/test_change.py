"""THE protocol: everything happens or nothing does, whoever fails, leaves or comes first."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.core.attachments import Attached
from app.core.events import PreparationEnded, PreparationStarted
from app.core.problem import Problem
from app.core.problems import (
    CatalogInvalid,
    ServerBusy,
    ServerChanged,
    ServerExists,
    ServerNotFound,
    ServerUnavailable,
    StoreUnavailable,
    TooMany,
)
from tests.support.scripted_http import ECHO, REVISION, Reply, ScriptedHttp, result, scripted_http, stream
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("lifecycle")

CLOSED_PORT = "http://127.0.0.1:9/mcp"


def gated(event: anyio.Event) -> dict[str, Any]:
    """Answers of a peer that lists its tools only once the event is set."""
    body = '{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}'
    return {"tools/list": stream(event, f"data: {body}\n\n")}


async def everything(house: WorkspaceHouse) -> Any:
    """Return what a failed change must leave as it was."""
    workspace = house.workspace()
    return (
        await house.rows(),
        dict(workspace.snapshot.servers),
        house.connector.unretired(),
        workspace.state.snapshot(),
    )


async def test_attach_prepares_stores_and_publishes(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        answered = await house.act("attach", server=http(peer))
        assert answered["status"] == 201
        assert answered["server"] == (await house.listed())["p"]
        assert answered["server"]["state"] == "connected"
        assert answered["server"]["tools"] == ["echo"]
        assert answered["server"]["protocolVersion"] == REVISION
        rows = await house.rows()
        assert rows == {"p": Attached(f'{{"name":"p","transport":"http","url":"{peer.url}"}}')}
        assert house.events == [PreparationStarted("p"), PreparationEnded("p")]
        shown: Any = house.workspace().state.snapshot()["servers"]
        assert list(shown) == ["p"]


BROKEN: dict[str, tuple[dict[str, Any], dict[str, Any], type[Problem]]] = {
    "nobody there": ({"url": CLOSED_PORT}, {}, ServerUnavailable),
    "duplicate tool": ({}, {"tools/list": result({"tools": [ECHO, ECHO]})}, CatalogInvalid),
    "configured tool absent": ({"tools": ["other"]}, {}, CatalogInvalid),
    "endless pagination": ({}, {"tools/list": result({"tools": [], "nextCursor": "again"})}, CatalogInvalid),
    "lost while listing": (
        {},
        {"tools/list": Reply(raw=[b"HTTP/1.1 200 OK\r\n"], then="reset")},
        ServerUnavailable,
    ),
}


@pytest.mark.parametrize("kind", ["attach", "replace"])
@pytest.mark.parametrize("members, answers, expected", BROKEN.values(), ids=BROKEN)
async def test_a_failed_candidate_leaves_everything_as_it_was(
    tmp_path: Path, kind: str, members: dict[str, Any], answers: dict[str, Any], expected: type[Problem]
) -> None:
    async with scripted_http() as good, scripted_http(answers) as bad, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(good))
        before = await everything(house)
        name = "q" if kind == "attach" else "p"
        with pytest.raises(expected):
            await house.act(kind, server=http(bad, name) | members)
        assert await everything(house) == before


async def test_a_failed_reconnect_leaves_everything_as_it_was(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        before = await everything(house)
        peer.answers["server/discover"] = Reply(status=503)
        with pytest.raises(ServerUnavailable):
            await house.act("reconnect", name="p")
        assert await everything(house) == before


@pytest.mark.parametrize("kind", ["attach", "replace", "detach"])
async def test_a_failed_write_leaves_everything_as_it_was(tmp_path: Path, kind: str) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        before = await everything(house)
        house.store.failure = StoreUnavailable("the disk is full")
        members: dict[str, Any] = {
            "attach": {"server": http(peer, "q")},
            "replace": {"server": http(peer, tools=[])},
            "detach": {"name": "p"},
        }[kind]
        with pytest.raises(StoreUnavailable):
            await house.act(kind, **members)
        assert await everything(house) == before


async def test_replace_retires_the_old_connection_after_the_new_one_is_published(tmp_path: Path) -> None:
    async with scripted_http() as old, scripted_http() as new, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(old))
        answered = await house.act("replace", server=http(new, tools=[]))
        assert (answered["status"], answered["server"]["enabledTools"], answered["server"]["tools"]) == (
            200,
            [],
            [],
        )
        assert house.connector.unretired() == house.connector.opened[1:]
        assert new.url in str((await house.rows())["p"])


async def test_readers_see_the_old_snapshot_until_the_new_one_is_stored(tmp_path: Path) -> None:
    async with scripted_http() as old, scripted_http() as new, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(old))
        workspace, before = house.workspace(), house.workspace().snapshot
        house.store.before_write = anyio.Event()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:

                async def replace() -> None:
                    await house.act("replace", server=http(new))

                house.store.writing = anyio.Event()
                group.start_soon(replace)
                await house.store.writing.wait()
                assert workspace.snapshot is before
                house.store.before_write.set()
        assert workspace.snapshot is not before
        assert before.servers["p"].published is not workspace.snapshot.servers["p"].published


async def test_a_change_is_refused_while_the_old_connection_owns_an_operation(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.act("attach", server=http(peer))
        lease = await house.workspace().lease("p", "op-1")
        before = await everything(house)
        changes: dict[str, dict[str, Any]] = {
            "replace": {"server": http(peer, tools=[])},
            "reconnect": {"name": "p"},
            "detach": {"name": "p"},
        }
        for kind, members in changes.items():
            with pytest.raises(ServerBusy) as busy:
                await house.act(kind, **members)
            assert busy.value.facts["operations"] == ["op-1"]
        assert await everything(house) == before
        lease.release()
        await house.act("detach", name="p")
        assert house.connector.unretired() == []


async def test_a_change_prepared_before_another_change_of_the_server_is_refused(tmp_path: Path) -> None:
    gate = anyio.Event()
    async with (
        scripted_http() as peer,
        scripted_http(gated(gate)) as slow,
        workspace_house(tmp_path) as house,
    ):
        await house.act("attach", server=http(peer))

        async def late() -> None:
            with pytest.raises(ServerChanged):
                await house.act("replace", server=http(slow))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(late)
                await anyio.wait_all_tasks_blocked()
                await house.act("reconnect", name="p")
                gate.set()
        assert peer.url in str((await house.rows())["p"])
        assert len(house.connector.unretired()) == 1


async def test_two_attaches_of_one_name_leave_one_server(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        ended: list[Any] = []

        async def attach() -> None:
            try:
                ended.append((await house.act("attach", server=http(peer)))["status"])
            except Problem as problem:
                ended.append(type(problem))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(attach)
        assert sorted(map(str, ended)) == sorted(map(str, [201, *[ServerExists] * 4]))
        assert len(house.connector.unretired()) == 1


async def test_detach_cancels_what_is_only_being_prepared(tmp_path: Path) -> None:
    gate = anyio.Event()
    async with scripted_http(gated(gate)) as slow, workspace_house(tmp_path) as house:

        async def attach() -> None:
            with pytest.raises(ServerChanged):
                await house.act("attach", server=http(slow))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(attach)
                while "p" not in house.workspace().preparations:
                    await anyio.sleep(0.005)
                assert await house.act("detach", name="p") == {"status": 200, "name": "p", "detached": True}
        gate.set()
        assert await house.listed() == {}
        assert await house.rows() == {}
        assert house.connector.unretired() == []
        with pytest.raises(ServerNotFound):
            await house.act("detach", name="p")


async def test_preparing_one_server_blocks_no_other(tmp_path: Path) -> None:
    gate = anyio.Event()
    async with (
        scripted_http(gated(gate)) as slow,
        scripted_http() as peer,
        workspace_house(tmp_path) as house,
    ):
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:

                async def attach() -> None:
                    await house.act("attach", server=http(slow, "slow"))

                group.start_soon(attach)
                await anyio.wait_all_tasks_blocked()
                await house.act("attach", server=http(peer))
                (await house.workspace().lease("p", "op-1")).release()
                await house.act("detach", name="p")
                assert await house.listed() == {}
                gate.set()
        assert list(await house.listed()) == ["slow"]


async def test_a_server_beyond_the_limit_is_refused_and_its_candidate_closed(tmp_path: Path) -> None:
    async with (
        scripted_http() as peer,
        workspace_house(tmp_path, environment={"PLURNK_MAX_SERVERS": "1"}) as house,
    ):
        await house.act("attach", server=http(peer))
        with pytest.raises(TooMany) as refused:
            await house.act("attach", server=http(peer, "q"))
        assert refused.value.facts == {"limit": 1, "setting": "PLURNK_MAX_SERVERS"}
        assert len(house.connector.unretired()) == 1


async def test_a_commit_that_has_begun_completes_when_its_client_leaves(tmp_path: Path) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.workspace().ready()
        house.store.before_write = anyio.Event()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:

                async def attach() -> None:
                    await house.act("attach", server=http(peer))

                group.start_soon(attach)
                await house.store.writing.wait()
                group.cancel_scope.cancel()
                house.store.before_write.set()
        assert list(await house.rows()) == list(await house.listed()) == ["p"]
        assert len(house.connector.unretired()) == 1


async def test_a_commit_that_has_begun_completes_when_its_task_is_cancelled_past_every_shield(
    tmp_path: Path,
) -> None:
    async with scripted_http() as peer, workspace_house(tmp_path) as house:
        await house.workspace().ready()
        house.store.before_write = anyio.Event()
        attach = asyncio.ensure_future(house.act("attach", server=http(peer)))
        with anyio.fail_after(10):
            await house.store.writing.wait()
            attach.cancel()
            await anyio.wait_all_tasks_blocked()
            house.store.before_write.set()
            await asyncio.wait([attach])
        assert attach.cancelled()
        assert list(await house.rows()) == list(await house.listed()) == ["p"]
        assert house.connector.unretired() == house.workspace().connections()


@pytest.mark.parametrize("kind", ["attach", "replace", "detach", "reconnect"])
async def test_a_client_that_leaves_at_any_await_leaves_all_or_nothing(tmp_path: Path, kind: str) -> None:
    async with scripted_http() as peer, scripted_http() as other, workspace_house(tmp_path) as house:
        turns = 0
        while not await _left_after(house, peer, other, kind, f"w{turns}", turns):
            # A commit is a few hundred turns; a slow disk may stretch it, which steps may skip.
            turns += 1 if turns < 60 else max(3, turns // 8)


async def _left_after(
    house: WorkspaceHouse, peer: ScriptedHttp, other: ScriptedHttp, kind: str, workspace: str, turns: int
) -> bool:
    """Leave an action after so many turns of the event loop; return whether it had ended by then."""
    await house.workspace(workspace).ready()
    if kind != "attach":
        await house.act("attach", workspace, server=http(peer))
    opened = house.workspace(workspace).connections()
    members: dict[str, Any] = {"name": "p"} if kind in {"detach", "reconnect"} else {"server": http(other)}
    is_over = False

    async def action() -> None:
        nonlocal is_over
        await house.act(kind, workspace, **members)
        is_over = True

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(action)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    rows, shown = await house.rows(workspace), house.workspace(workspace).snapshot.servers
    assert rows.keys() == shown.keys()
    if shown:
        definition = shown["p"].definition
        assert definition is not None
        assert f'"{getattr(definition, "url", "")}"' in str(rows["p"])
    is_unchanged = house.workspace(workspace).connections() == opened
    assert not (is_over and is_unchanged)
    await house.act("list", workspace)
    with anyio.fail_after(10):
        while len(house.connector.unretired()) != sum(
            len(each.connections()) for each in house.manager._workspaces.values()
        ):
            await anyio.sleep(0.005)
    return is_over
