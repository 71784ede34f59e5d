"""refreshes.py: when a connection lists again, counted on a pace of the test's making."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup

from app.connections.recovery import Backoff
from app.connections.refreshes import Pace, Refreshes
from tests.support.eventually import eventually

pytestmark = pytest.mark.spec("watch")

TOOLS, PROMPTS = frozenset({"tools"}), frozenset({"prompts"})


class House:
    """Refreshes whose every run waits for the test where it holds the gate."""

    def __init__(self, pace: Pace) -> None:
        self.runs: list[frozenset[str]] = []
        self.gate: anyio.Event | None = None
        self.outcomes: list[bool | Exception] = []
        self.running = 0
        self.most = 0
        self.refreshes = Refreshes(self._refresh, pace, server="p")
        self.group: TaskGroup

    async def _refresh(self, capabilities: frozenset[str]) -> bool:
        self.runs.append(capabilities)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.gate is not None:
                await self.gate.wait()
        finally:
            self.running -= 1
        outcome = self.outcomes.pop(0) if self.outcomes else True
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    @property
    def tasks(self) -> bool:
        """Whether any task is there."""
        return self.refreshes._scope is not None


@asynccontextmanager
async def house(*, debounce: float = 0.0, interval: float = 0.0, again: float = 0.0) -> AsyncGenerator[House]:
    home = House(Pace(debounce, interval, Backoff(first=again, ceiling=again)))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as home.group:
            home.refreshes.start(home.group)
            yield home
            home.group.cancel_scope.cancel()


async def test_a_burst_is_one_refresh_of_all_that_changed_and_no_task_is_left() -> None:
    async with house(debounce=0.05) as home:
        assert not home.tasks
        for _ in range(200):
            home.refreshes.ask(TOOLS)
            home.refreshes.ask(PROMPTS)
        await eventually(lambda: home.runs and not home.tasks)
        assert home.runs == [TOOLS | PROMPTS]


async def test_one_is_in_flight_and_one_gathers_the_rest() -> None:
    async with house() as home:
        home.gate = anyio.Event()
        home.refreshes.ask(TOOLS)
        await eventually(lambda: home.running)
        for _ in range(50):
            home.refreshes.ask(PROMPTS)
            await anyio.lowlevel.checkpoint()
        home.gate.set()
        await eventually(lambda: not home.tasks)
        assert home.runs == [TOOLS, PROMPTS]
        assert home.most == 1


async def test_a_storm_without_end_costs_one_refresh_an_interval() -> None:
    async with house(debounce=0.01, interval=0.2) as home:
        started = anyio.current_time()
        while anyio.current_time() - started < 1.0:
            home.refreshes.ask(TOOLS)
            await anyio.sleep(0.001)
        took = anyio.current_time() - started
        assert 2 <= len(home.runs) <= 1 + took / 0.2


async def test_the_shipped_pace_is_that_of_the_contract() -> None:
    assert (Pace().debounce, Pace().interval) == (0.25, 2.0)
    assert Pace().backoff == Backoff(first=2.0, ceiling=60.0)


async def test_what_is_to_be_tried_again_is_and_what_is_settled_is_not() -> None:
    async with house() as home:
        home.outcomes = [False, False, True]
        home.refreshes.ask(TOOLS)
        await eventually(lambda: home.runs and not home.tasks)
        assert home.runs == [TOOLS] * 3


async def test_announcements_do_not_hurry_what_waits_to_be_tried_again() -> None:
    async with house(again=3600.0) as home:
        home.outcomes = [False]
        home.refreshes.ask(TOOLS)
        await eventually(lambda: home.runs and home.running == 0)
        for _ in range(20):
            home.refreshes.ask(PROMPTS)
            await anyio.sleep(0.001)
        assert home.runs == [TOOLS]


async def test_a_bug_in_a_refresh_ends_nothing_else() -> None:
    async with house() as home:
        home.outcomes = [RuntimeError("a bug"), True]
        home.refreshes.ask(TOOLS)
        await eventually(lambda: home.runs and not home.tasks)
        home.refreshes.ask(PROMPTS)
        await eventually(lambda: not home.tasks)
        assert home.runs == [TOOLS, PROMPTS]


async def test_stopped_it_has_no_task_and_what_was_asked_before_the_start_is_due_then() -> None:
    async with house() as home:
        home.gate = anyio.Event()
        home.refreshes.ask(TOOLS)
        await eventually(lambda: home.running)
        home.refreshes.ask(PROMPTS)
        await home.refreshes.stopped()
        assert (home.tasks, home.running) == (False, 0)
        home.gate = None
        home.refreshes.ask(PROMPTS)
        assert not home.tasks
        home.refreshes.start(home.group)
        await eventually(lambda: not home.tasks)
        assert home.runs == [TOOLS, PROMPTS]
        await home.refreshes.stopped()
