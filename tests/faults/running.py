"""Running the cases: each on a daemon that has its environment, several at once. SPEC §status."""

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from tests.faults.acting import act_all, install_files
from tests.faults.cases import Json, Run
from tests.faults.judgement import judge_all
from tests.faults.starting import INSPECTOR, forget_peak, memory
from tests.faults.stdio_peer import StdioPeer
from tests.faults.world import SHARED_ENVIRONMENT, World, world_of
from tests.support.daemon import Daemon
from tests.support.databases import held

AT_ONCE = 4
_STARTING = {"start", "start_and_end", "write_db"}
_OWN_STEPS = {*_STARTING, "stop", "restart", "arm_fault"}
_OWN_MEMBERS = {"config", "sql_other_process", "sql_state", "fault"}
_CONFIG = {"allow_stdio_attach": {False: ("PLURNK_STDIO_POLICY", "defaults")}}
LONG = ("H10", "X3", "P2", "P3", "F3", "X1", "S1", "D1", "P1")
"""Kinds that take seconds: they begin first, like what has its own daemon, and the short ones run beside them."""


@dataclass
class House:
    """The daemons that runs share, by what their environments hold, and the directory of everything."""

    directory: Path
    shared: list[tuple[dict[str, str], Daemon]] = field(default_factory=list[tuple[dict[str, str], Daemon]])
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def sharing(self, wanted: dict[str, str]) -> Daemon:
        """Return a running daemon whose environment has what is wanted and nothing that differs."""
        async with self.lock:
            for environment, daemon in self.shared:
                if wanted.items() <= environment.items():
                    return daemon
            daemon = Daemon(self.directory / f"shared-{len(self.shared)}", wanted)
            self.shared.append((wanted, daemon))
            return await daemon.start()

    def close(self) -> None:
        """End the shared daemons."""
        for _, daemon in self.shared:
            daemon.close()


def is_alone(run: Run) -> bool:
    """Whether the run needs a daemon that nobody else uses."""
    case = run.case
    steps = {name for step in case["steps"] for name in named(step)}
    own_names = any(name.startswith(("PLURNK_", "PATH", "HTTP_")) for name in case.get("env", {}))
    measures = any("growth" in name for expectation in case["expect"] for name in expectation)
    return bool(steps & _OWN_STEPS or case.keys() & _OWN_MEMBERS or own_names or measures)


def named(step: Json) -> Iterator[str]:
    """Give the names of a step and of those that run beside each other in it."""
    yield from step
    for each in step.get("parallel", ()):
        yield from named(each.get("do", each))


def environments(runs: Iterable[Run]) -> dict[str, dict[str, str]]:
    """Return an environment for each run that shares: as few different ones as agree on every name."""
    merged: list[dict[str, str]] = []
    places: dict[str, int] = {}
    for run in runs:
        wanted = run.case.get("env", {})
        if is_alone(run):
            continue
        place = next(
            (
                number
                for number, held_ in enumerate(merged)
                if all(held_.get(name, value) == value for name, value in wanted.items())
            ),
            len(merged),
        )
        if place == len(merged):
            merged.append(dict(SHARED_ENVIRONMENT))
        merged[place].update(wanted)
        places[run.identity] = place
    return {identity: merged[place] for identity, place in places.items()}


async def run_all(house: House, runs: list[Run]) -> dict[str, list[str]]:
    """Return what is wrong with each run."""
    outcomes: dict[str, list[str]] = {}
    shared = environments(runs)
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def one(run: Run) -> None:
        async with limit:
            daemon = await house.sharing(shared[run.identity]) if run.identity in shared else None
            outcomes[run.identity] = await outcome(house, run, daemon)

    async with anyio.create_task_group() as group:
        for run in sorted(runs, key=lambda each: not (each.id.startswith(LONG) or is_alone(each))):
            group.start_soon(one, run)
    return outcomes


async def outcome(house: House, run: Run, daemon: Daemon | None) -> list[str]:
    """Return what is wrong with one run; an exception of its steps is wrong too."""
    directory = house.directory / run.identity
    directory.mkdir()
    own = daemon is None
    daemon = daemon or Daemon(directory / "daemon", SHARED_ENVIRONMENT)
    try:
        async with world_of(run, daemon, directory) as world:
            if own:
                await _own_daemon(world)
            return await _done(world)
    except Exception as failure:
        return [f"{type(failure).__name__}: {failure}", *_inner(failure)]
    finally:
        if own:
            daemon.close()


def _inner(failure: BaseException) -> list[str]:
    return [repr(each) for each in failure.exceptions] if isinstance(failure, BaseExceptionGroup) else []


async def _done(world: World) -> list[str]:
    install_files(world)
    with ExitStack() as stack:
        if "sql_other_process" in world.case:
            release = stack.enter_context(held(world.daemon.home / "plurnk.db"))

            async def later() -> None:
                await anyio.sleep(held_seconds(world.case["sql_other_process"]))
                release()

            world.group.start_soon(later)
        with anyio.fail_after(120):
            await act_all(world)
        return await judge_all(world)


def held_seconds(script: list[str]) -> float:
    """Return how long the other process holds the lock: what its comment says."""
    [milliseconds] = re.findall(r"hold (\d+) ms", " ".join(script))
    return int(milliseconds) / 1000


async def _own_daemon(world: World) -> None:
    """Give the run's own daemon its environment, and start it unless a step does."""
    case = world.case
    config = dict(_CONFIG[name][value] for name, value in case.get("config", {}).items())
    world.daemon.environment = {**SHARED_ENVIRONMENT, **case.get("env", {}), **config}
    if any("repeat" in step for step in case["steps"]):
        world.daemon.environment = {
            **world.daemon.environment,
            "PYTHONPATH": str(INSPECTOR),
            "TASK_COUNT": str(world.directory / "tasks"),
            "PLURNK_MCP_CONNECT_TIMEOUT": "200"
            if case["steps"][0]["do"]["attach_detach"] == "timeout"
            else "30000",
        }
    if not any(step.keys() & _STARTING for step in case["steps"]):
        await world.daemon.start()
    if any("rss_growth_max_mib" in expectation for expectation in case["expect"]):
        await _warm(world)


async def _warm(world: World) -> None:
    """Let the daemon load and keep what it does for every server, so that growth is the case's own."""
    good = StdioPeer(world.directory / "good", {})
    definitions = [
        {"name": "good", "transport": "stdio", "command": str(good.program)},
        {"name": "web", "transport": "http", "url": world.http2.url},
    ]
    for definition in definitions:
        await world.daemon.attach(world.workspace("w1"), definition)
        await world.daemon.act(world.workspace("w1"), "workspace.mcp.detach", name=definition["name"])
    forget_peak(world.daemon.pid)
    world.facts["resident"] = memory(world.daemon.pid, "VmRSS")
