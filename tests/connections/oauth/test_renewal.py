"""renewal.py: one renewal at a time, and who is held up by it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import TaskGroup

from app.connections.oauth.renewal import SharedRenewal
from app.core.problem import Problem
from app.core.problems import ServerUnavailable

pytestmark = pytest.mark.spec("oauth")


class House:
    """A renewal that waits for the gate, and what came of joining it."""

    def __init__(self) -> None:
        self.renewal = SharedRenewal()
        self.gate = anyio.Event()
        self.begun = 0
        self.failure: Exception | None = None
        self.outcomes: list[Problem | None] = []
        self.group: TaskGroup

    async def renew(self) -> None:
        self.begun += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure

    async def join(self) -> None:
        self.outcomes.append(await self.renewal.join(self.group, self.renew))


@asynccontextmanager
async def house() -> AsyncGenerator[House]:
    home = House()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as home.group:
            yield home
            home.group.cancel_scope.cancel()


async def test_all_who_come_meanwhile_share_one_and_who_comes_later_begins_another() -> None:
    async with house() as home:
        async with anyio.create_task_group() as waiting:
            for _ in range(5):
                waiting.start_soon(home.join)
            await anyio.wait_all_tasks_blocked()
            assert home.outcomes == []
            home.gate.set()
        assert (home.begun, home.outcomes) == (1, [None] * 5)
        await home.join()
        assert home.begun == 2


async def test_who_leaves_ends_it_for_nobody() -> None:
    async with house() as home:
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(home.join)
            await anyio.wait_all_tasks_blocked()
            home.group.start_soon(home.join)
            await anyio.wait_all_tasks_blocked()
            leaving.cancel_scope.cancel()
        assert home.outcomes == []
        home.gate.set()
        await anyio.wait_all_tasks_blocked()
        assert (home.begun, home.outcomes) == (1, [None])


async def test_its_problem_is_told_to_all_and_a_bug_of_ours_ends_it_too() -> None:
    async with house() as home:
        home.gate.set()
        home.failure = ServerUnavailable("p", "http", "gone")
        async with anyio.create_task_group() as waiting:
            for _ in range(2):
                waiting.start_soon(home.join)
        assert [problem and problem.code for problem in home.outcomes] == ["server-unavailable"] * 2
        home.failure = RuntimeError("a bug")
        await home.join()
        assert home.outcomes[2] is None


async def test_it_is_over_where_its_group_ends() -> None:
    async with house() as home:
        async with anyio.create_task_group() as group:
            group.start_soon(home.renewal.join, group, home.renew)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        home.gate.set()
        await home.join()
        assert home.begun == 2


async def test_one_that_no_group_takes_holds_nobody_up_later() -> None:
    async with house() as home:
        async with anyio.create_task_group() as group:
            pass
        with pytest.raises(RuntimeError):
            await home.renewal.join(group, home.renew)
        home.gate.set()
        await home.join()
        assert (home.begun, home.outcomes) == (1, [None])
