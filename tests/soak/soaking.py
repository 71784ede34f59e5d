"""A soak: clients, servers that die and come back, and a daemon that does, until the time is over. SPEC §lifecycle.

Chance chooses from a seed. First the daemon has many short lives, then one long one, at whose end nothing may be left.
"""

import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

import anyio

from tests.soak.calling import call, calls_and_a_change, leave, settle
from tests.soak.changing import change, look
from tests.soak.memory import BLOCKS_LEFT_MAX, REST_S, Memory, resident_mib
from tests.soak.model import Workspace
from tests.soak.peers import DEFAULT, peers
from tests.soak.remains import INSPECTOR, Remains, connections, remains, temporary
from tests.soak.world import GONE, World, log_of, new_workspaces
from tests.support.daemon import Daemon

LIFE_S: Final = (2.0, 8.0)
"""How long one of the short lives lasts."""
SHORT_LIVES: Final = 0.5
"""The part of the time that is short lives, as long as it is short itself."""
SHORT_LIVES_MAX_S: Final = 300.0
QUIET_S: Final = 40.0
"""How long the last of everything may take to be gone: close ladders, back-offs, idle connections of the pool."""
STEPS: Final[tuple[tuple[Callable[[World, Workspace], Awaitable[None]], int], ...]] = (
    (change, 6),
    (call, 8),
    (calls_and_a_change, 2),
    (leave, 2),
    (settle, 2),
    (look, 1),
)


@dataclass(frozen=True)
class Effort:
    """How much of everything."""

    seconds: float = 180.0
    workspaces: int = 300
    clients: int = 12
    is_rested: bool = False
    """Whether what is left is looked at once the ends of operations are forgotten."""
    pause: float = 0.0
    """Seconds that a client waits at most before it does the next thing."""
    seed: int = 0


@dataclass(frozen=True)
class Figures:
    """What a soak came to."""

    effort: Effort
    lives: int
    counts: Counter[str]
    carried_out: int
    before: Remains
    after: Remains
    memory: Memory


async def soak(directory: Path, effort: Effort) -> Figures:
    """Soak a daemon and return the figures.

    Raises:
        AssertionError: something was said, left or written that must not be.
    """
    async with peers(directory) as servers:
        daemon = Daemon(directory / "daemon")
        temporary(daemon).mkdir(parents=True)
        daemon.environment = _environment(daemon, servers.default.url)
        rng = Random(effort.seed)  # noqa: S311 chance that can be had again
        world = World(daemon, servers, rng, new_workspaces(effort.workspaces))
        try:
            return await _soaked(world, effort)
        except BaseException:
            print(log_of(daemon.directory))
            raise
        finally:
            daemon.close()


def _environment(daemon: Daemon, shared: str) -> dict[str, str]:
    return {
        "PYTHONPATH": f"{INSPECTOR}:{INSPECTOR.parents[2]}",
        "TASK_COUNT": str(daemon.directory / "tasks"),
        "TMPDIR": str(temporary(daemon)),
        f"PLURNK_MCP_{DEFAULT}": shared,
        f"PLURNK_MCP_{DEFAULT}_READ": '["echo", "slow", "ask", "work", "grow", "die"]',
        "PLURNK_MCP_CONNECT_TIMEOUT": "10000",
        "PLURNK_MCP_REQUEST_TIMEOUT": "20000",
        "PLURNK_PROPOSAL_TIMEOUT": "5000",
        "PLURNK_WORKSPACE_IDLE": "3000",
        "PLURNK_MAX_PENDING": "20",
        "PLURNK_LOG_LEVEL": "warning",
    }


async def _soaked(world: World, effort: Effort) -> Figures:
    await _begin(world)
    before = await _held_by_nobody(world)
    began, memory = time.monotonic(), Memory([])
    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as clients:
            for _ in range(effort.clients):
                clients.start_soon(_client, world, effort.pause)
            group.start_soon(_servers_die_and_come_back, world)
            await _short_lives(world, began + min(SHORT_LIVES * effort.seconds, SHORT_LIVES_MAX_S))
            memory = Memory(await _long_life(world, began + effort.seconds))
            world.is_over = True
        group.cancel_scope.cancel()
    after = await _ended(world, before)
    if effort.is_rested:
        await anyio.sleep(REST_S)
        after = await _quiet(world, before)
        assert after.blocks - before.blocks <= BLOCKS_LEFT_MAX, (before, after)
    world.require_calls()
    assert await world.daemon.stop() == 0
    world.require_database()
    carried_out = world.peers.carried_out().total()
    memory.require_flat()
    return Figures(effort, world.life, world.counts, carried_out, before, after, memory)


async def _begin(world: World) -> None:
    """Begin a life of the daemon."""
    mode = world.rng.choice(("strict", "isolate"))
    eager = world.rng.choice(("lazy", "lazy", "eager"))
    world.daemon.environment = {**world.daemon.environment, "PLURNK_HYDRATION": mode, "PLURNK_HYDRATE": eager}
    await world.daemon.start()
    world.life += 1
    world.is_up.set()


async def _held_by_nobody(world: World) -> Remains:
    """Return what a daemon holds that has done everything once and holds nothing any more."""
    for name in ("child", "web"):
        await world.daemon.attach("first", world.peers.definition(name, world.rng))
        await world.daemon.call_text("first", name, "echo", text=f"first-{name}")
        world.said[f"first-{name}"] = "ok"
        await world.daemon.act("first", "workspace.mcp.detach", name=name)
    await world.daemon.act("first", "workspace.mcp.detach", name=DEFAULT)
    world.workspaces.append(Workspace("first", {DEFAULT: None}))
    return await _quiet(world, None)


async def _client(world: World, pause: float) -> None:
    """Do one thing after the other in one workspace after the other."""
    steps, weights = zip(*STEPS, strict=True)
    while not world.is_over:
        await anyio.sleep(world.rng.uniform(0, pause))
        async with world.one() as workspace:
            life = world.life
            [step] = world.rng.choices(steps, weights)
            try:
                await step(world, workspace)
            except* GONE:
                world.counts["step gone"] += 1
            # A workspace is only left once what it asked for in that life is over.
            if not world.is_up.is_set() and not world.is_over:
                await world.next_life(life)


async def _servers_die_and_come_back(world: World) -> None:
    """Kill a server now and then, and let each that is dead come back after a while."""
    while True:
        await anyio.sleep(world.rng.uniform(0.5, 1.5))
        for peer in world.peers.web:
            if not peer.is_up and world.rng.random() < 0.6:
                await peer.start()
                world.counts["server back"] += 1
        victim = world.rng.choice(world.peers.web)
        if world.rng.random() < 0.3:
            victim.kill()
            world.counts["server killed"] += 1
        chance = world.rng.random()
        if chance < 0.2:
            world.peers.granting.expire_all()
        elif chance < 0.25:
            world.peers.granting.revoke_all()


async def _short_lives(world: World, until: float) -> None:
    while time.monotonic() < until:
        await anyio.sleep(min(world.rng.uniform(*LIFE_S), max(until - time.monotonic(), 0.5)))
        await _end_life(world)
        await _begin(world)


async def _end_life(world: World) -> None:
    number = world.rng.choice((signal.SIGTERM, signal.SIGKILL))
    world.is_up = anyio.Event()
    status = await world.daemon.stop(number)
    world.counts[f"daemon {number.name}"] += 1
    assert status == (0 if number == signal.SIGTERM else -signal.SIGKILL), status


async def _long_life(world: World, until: float) -> list[tuple[float, float, float]]:
    """Return how much memory and how many connections the daemon had at which second of its life."""
    began = time.monotonic()
    points: list[tuple[float, float, float]] = []
    while (now := time.monotonic()) < until:
        assert world.daemon.process is not None
        assert world.daemon.process.poll() is None, "the daemon ended by itself"
        points.append((now - began, resident_mib(world.daemon.pid), await connections(world.daemon)))
        await anyio.sleep(1)
    return points


async def _ended(world: World, before: Remains) -> Remains:
    """Answer and detach everything, and return what is left; the database equals the model on the way."""
    for peer in world.peers.web:
        if not peer.is_up:
            await peer.start()
    world.require_database()
    for workspace in world.workspaces:
        await look(world, workspace)
        await _detach_all(world, workspace)
    world.require_database()
    return await _quiet(world, before)


async def _detach_all(world: World, workspace: Workspace) -> None:
    for name in (*workspace.effective, *(["guarded"] if workspace.is_pending else [])):
        answer = await world.daemon.act(workspace.name, "workspace.mcp.detach", name=name)
        if answer.get("code") == "server-busy":
            # What was asked waits for a person, also where the client left before it heard the question.
            for operation in answer["operations"]:
                await world.daemon.act(workspace.name, "workspace.mcp.cancel", operation=operation)
            answer = await world.daemon.act(workspace.name, "workspace.mcp.detach", name=name)
        is_pending = name == "guarded" and name not in workspace.effective
        assert answer.get("detached") or (is_pending and answer["code"] == "server-not-found"), answer
        workspace.entries.pop(name, None)
        if name == DEFAULT:
            workspace.entries[name] = None
    workspace.questions.clear()


async def _quiet(world: World, expected: Remains | None) -> Remains:
    """Return what is held once it is as expected, or three looks in a row saw the same.

    Raises:
        AssertionError: something else was still held after a while.
    """
    seen: list[Remains] = []
    with anyio.move_on_after(QUIET_S):
        while True:
            seen.append(await remains(world.daemon))
            if expected is None and len(seen) > 20 and _is_within(seen[-1], seen[-10]):
                return seen[-1]
            if expected is not None and _is_within(seen[-1], expected):
                return seen[-1]
            await anyio.sleep(0.1)
    raise AssertionError((seen[-1], expected))


def _is_within(now: Remains, expected: Remains) -> bool:
    """Whether nothing is held that was not held before the first client came."""
    fewer = now.tasks <= expected.tasks and now.threads <= expected.threads
    same = replace(
        now,
        tasks=expected.tasks,
        threads=expected.threads,
        descriptors=expected.descriptors,
        blocks=expected.blocks,
    )
    return fewer and now.descriptors <= expected.descriptors and same == expected
