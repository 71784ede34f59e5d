"""A failed workspace is not a locked one: changes that meet each other and the hydration that follows them."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.eventually import eventually
from tests.support.scripted_http import HANG, Reply, default_answers, scripted_http
from tests.support.workspace_house import WorkspaceHouse, http, workspace_house

pytestmark = pytest.mark.spec("hydration", "lifecycle")

GONE = {"name": "bad", "transport": "stdio", "command": "/nonexistent/server"}
DOWN = Reply(status=503)


async def states(house: WorkspaceHouse) -> dict[str, str]:
    return {name: server["state"] for name, server in (await house.listed()).items()}


@pytest.mark.parametrize("mode", ["strict", "isolate"])
async def test_changes_at_once_lose_no_connection_to_the_hydration_that_follows(
    tmp_path: Path, mode: str
) -> None:
    """One change commits and begins a hydration while the others wait to commit before it."""
    environment = {"PLURNK_HYDRATION": mode}
    async with (
        scripted_http() as peer,
        workspace_house(tmp_path, defaults={"bad": GONE}, environment=environment) as house,
    ):
        assert await states(house) == {"bad": "unavailable"}
        house.store.before_write = anyio.Event()

        async def act(kind: str, **members: Any) -> None:
            await house.act(kind, **members)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for name in "pqr":
                    group.start_soon(lambda name=name: act("attach", server=http(peer, name)))
                group.start_soon(lambda: act("detach", name="bad"))
                await eventually(lambda: len(house.connector.opened) == 3)
                await anyio.wait_all_tasks_blocked()
                house.store.before_write.set()
        assert await states(house) == dict.fromkeys("pqr", "connected")
        assert set(house.connector.unretired()) == set(house.workspace().connections())
        for name in "pqr":
            (await house.workspace().lease(name, f"op-{name}")).release()


async def test_a_use_while_a_failed_hydration_still_closes_waits_for_the_same_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scripted_http() as peer, scripted_http({"server/discover": DOWN}) as bad:
        defaults = {"p": http(peer, "p"), "bad": http(bad, "bad")}
        async with workspace_house(tmp_path, defaults=defaults) as house:
            closing, let = anyio.Event(), anyio.Event()
            close = house.workspace().retirements.close

            async def slow(connections: Any) -> None:
                closing.set()
                await let.wait()
                await close(connections)

            monkeypatch.setattr(house.workspace().retirements, "close", slow)
            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    group.start_soon(house.listed)
                    await closing.wait()
                    monkeypatch.setattr(house.workspace().hydration, "_due", 0.0)
                    group.start_soon(house.listed)
                    await anyio.wait_all_tasks_blocked()
                    let.set()
            assert await states(house) == {"bad": "unavailable", "p": "unavailable"}
            await eventually(lambda: house.connector.unretired() == [])


async def test_an_attach_while_the_rest_hydrates_waits_for_it_and_keeps_its_connection(
    tmp_path: Path,
) -> None:
    async with scripted_http() as peer, scripted_http({"server/discover": DOWN}) as slow:
        defaults = {"slow": http(slow, "slow"), "bad": GONE}
        async with workspace_house(tmp_path, defaults=defaults) as house:
            assert await states(house) == {"bad": "unavailable", "slow": "unavailable"}
            slow.answers["server/discover"] = Reply(raw=[HANG])
            await house.act("detach", name="bad")
            await eventually(lambda: house.workspace().hydration.is_running)

            async def attach() -> None:
                await house.act("attach", server=http(peer))

            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    group.start_soon(attach)
                    await eventually(lambda: len(slow.of("server/discover")) == 2)
                    assert await house.rows() == {"bad": (await house.rows())["bad"]}
                    slow.answers["server/discover"] = default_answers()["server/discover"]
                    slow.drop_connections()
            assert set(await states(house)) == {"p", "slow"}
            assert set(house.connector.unretired()) == set(house.workspace().connections())


async def test_a_problem_that_many_are_told_keeps_none_of_them_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with workspace_house(tmp_path) as house:
        failure = RuntimeError("a bug")

        async def unreadable(_: str) -> Any:
            raise failure

        monkeypatch.setattr(house.store, "load", unreadable)
        told = list[Exception]()
        for _ in range(3):
            with pytest.raises(Exception, match="trace") as refused:
                await house.act("list")
            told.append(refused.value)
        assert len({id(each) for each in told}) == 3
        kept = house.workspace().hydration._load_problem
        assert kept is not None
        assert kept.__traceback__ is None


@pytest.mark.parametrize("mode", ["strict", "isolate"])
async def test_what_is_shown_of_a_server_that_cannot_be_had_keeps_nothing_of_the_attempt_alive(
    tmp_path: Path, mode: str
) -> None:
    environment = {"PLURNK_HYDRATION": mode}
    async with workspace_house(tmp_path, defaults={"bad": GONE}, environment=environment) as house:
        assert await states(house) == {"bad": "unavailable"}
        problem = house.workspace().snapshot.servers["bad"].problem
        assert problem is not None
        assert (problem.__traceback__, problem.__cause__, problem.__context__) == (None, None, None)
