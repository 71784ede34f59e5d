"""list_flights.py: who asks and who waits, with every drain behind a gate of the test's."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from app.connections.cache import Cache, Places
from app.connections.list_flights import JOINS_MAX, ListFlights
from app.connections.prepare import Listed
from app.core.cache_control import CacheControl
from app.core.catalog import Entry
from app.core.problem import Problem
from app.core.problems import Internal
from tests.support.eventually import eventually

PUBLIC: CacheControl = (60_000, "public")
PRIVATE: CacheControl = (60_000, "private")


def place(workspace: str) -> Places:
    return Places(workspace.encode(), b"url", "tools/list")


class House:
    """Askers by name; each drain waits until it is answered."""

    def __init__(self, group: TaskGroup, patience: float) -> None:
        self.cache: Cache[Listed] = Cache(clock=anyio.current_time)
        self.flights = ListFlights(self.cache, patience=patience)
        self.group = group
        self.gates: dict[str, anyio.Event] = {}
        self.outcomes: dict[str, Any] = {}
        self.scopes: dict[str, anyio.CancelScope] = {}
        self.controls: dict[str, CacheControl | Problem] = {}

    async def ask(self, *names: str, is_afresh: bool = False) -> None:
        """Let them ask, one after the other, until each waits for something."""
        for name in names:
            self.group.start_soon(self._ask, name, is_afresh)
            await anyio.wait_all_tasks_blocked()

    async def answer(self, name: str, how: CacheControl | Problem = PUBLIC) -> None:
        self.controls[name] = how
        self.gates[name].set()
        await anyio.wait_all_tasks_blocked()

    async def cancel(self, name: str) -> None:
        self.scopes[name].cancel()
        await anyio.wait_all_tasks_blocked()

    @property
    def asked(self) -> list[str]:
        return list(self.gates)

    async def _ask(self, name: str, is_afresh: bool) -> None:
        async def drain() -> Listed:
            self.gates[name] = anyio.Event()
            await self.gates[name].wait()
            how = self.controls[name]
            if isinstance(how, Problem):
                raise how
            return Listed((Entry(name, b"{}"),), cache_control=how)

        with anyio.CancelScope() as self.scopes[name]:
            try:
                listed = await self.flights.listed(place(name), drain, is_afresh=is_afresh)
                self.outcomes[name] = listed.entries[0].name
            except Problem as problem:
                self.outcomes[name] = problem.code


@asynccontextmanager
async def house(patience: float = 60.0) -> AsyncGenerator[House]:
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            yield House(group, patience)
            group.cancel_scope.cancel()


@pytest.mark.spec("watch")
async def test_all_that_come_meanwhile_and_later_have_what_one_asked_for() -> None:
    async with house() as home:
        await home.ask("a", "b", "c")
        await home.answer("a")
        await home.ask("d")
        assert home.asked == ["a"]
        assert home.outcomes == dict.fromkeys("abcd", "a")


@pytest.mark.spec("watch")
@pytest.mark.parametrize("control", [PRIVATE, (0, "public")])
async def test_where_nothing_is_shared_all_ask_at_once_and_nobody_waits_again(control: CacheControl) -> None:
    async with house() as home:
        await home.ask("a", "b", "c")
        assert home.asked == ["a"]
        await home.answer("a", control)
        assert home.asked == ["a", "b", "c"]
        await home.ask("d", "e")
        assert home.asked == ["a", "b", "c", "d", "e"]
        for name in "bcde":
            await home.answer(name, control)
        assert home.outcomes == {name: name for name in "abcde"}


@pytest.mark.spec("watch")
async def test_a_list_that_becomes_public_is_shared_again() -> None:
    async with house() as home:
        await home.ask("a")
        await home.answer("a", PRIVATE)
        await home.ask("b")
        await home.answer("b", PUBLIC)
        await home.ask("c", "a")
        assert home.outcomes == {"a": "a", "b": "b", "c": "b"}
        assert home.asked == ["a", "b"]


@pytest.mark.spec("watch")
async def test_a_failing_drain_is_its_askers_own_failure() -> None:
    async with house() as home:
        await home.ask("a", "b", "c")
        await home.answer("a", Internal("x"))
        assert home.outcomes == {"a": "internal"}
        assert home.asked == ["a", "b", "c"]
        await home.answer("b", Internal("x"))
        await home.answer("c")
        assert home.outcomes == {"a": "internal", "b": "internal", "c": "c"}


@pytest.mark.spec("watch")
async def test_one_who_is_cancelled_hands_over_to_the_next() -> None:
    async with house() as home:
        await home.ask("a", "b", "c")
        await home.cancel("a")
        assert home.asked == ["a", "b"]
        await home.answer("b")
        assert home.outcomes == {"b": "b", "c": "b"}


@pytest.mark.spec("watch")
async def test_nobody_waits_for_ever_for_others_who_give_up() -> None:
    async with house() as home:
        names = [f"n{index}" for index in range(JOINS_MAX + 2)]
        await home.ask(*names)
        for index in range(JOINS_MAX):
            assert home.asked == names[: index + 1]
            await home.cancel(names[index])
        assert home.asked == names


@pytest.mark.spec("watch")
async def test_who_has_waited_long_enough_for_one_that_hangs_asks_for_itself() -> None:
    async with house(patience=0.01) as home:
        await home.ask("hangs", "b", "c")
        await eventually(lambda: len(home.asked) == 3)
        await home.answer("b")
        await home.ask("d")
        await home.cancel("hangs")
        await home.answer("c", PRIVATE)
        assert home.outcomes == {"b": "b", "c": "c", "d": "b"}


@pytest.mark.spec("watch")
async def test_who_waits_may_leave_without_harm() -> None:
    async with house() as home:
        await home.ask("a", "b", "c")
        await home.cancel("b")
        await home.answer("a")
        assert home.outcomes == {"a": "a", "c": "a"}


@pytest.mark.spec("watch")
async def test_a_drain_overtaken_by_a_change_is_shared_with_nobody() -> None:
    async with house() as home:
        await home.ask("a", "b", "c")
        home.cache.invalidate(place("z"))
        await home.answer("a")
        assert home.asked == ["a", "b"]
        await home.answer("b")
        await home.ask("d")
        assert home.outcomes == {"a": "a", "b": "b", "c": "b", "d": "b"}


@pytest.mark.spec("watch")
async def test_who_lists_afresh_waits_for_nobody_and_what_it_gets_is_kept() -> None:
    async with house() as home:
        await home.ask("a")
        await home.ask("b", is_afresh=True)
        assert home.asked == ["a", "b"]
        await home.answer("b")
        await home.answer("a")
        await home.ask("c")
        assert home.outcomes == {"a": "a", "b": "b", "c": "b"}
        await home.ask("d", is_afresh=True)
        assert home.asked == ["a", "b", "d"]
        await home.answer("d", PRIVATE)
        await home.ask("e")
        assert home.asked == ["a", "b", "d", "e"]


@pytest.mark.spec("watch")
async def test_nothing_is_left_of_a_flight() -> None:
    async with house() as home:
        await home.ask("a", "b")
        await home.cancel("a")
        await home.answer("b", Internal("x"))
        assert home.flights._flights == {}
        assert home.cache._open == {}
