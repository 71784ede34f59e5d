"""The steps of the cases that start, end, damage or measure the daemon itself. SPEC §state, §shutdown."""

import os
import resource
import signal
import socket
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio

from tests.faults.world import SHARED_ENVIRONMENT, Json, World, now_ms
from tests.support.daemon import Daemon, DaemonEndedError

INSPECTOR = Path(__file__).parent / "inspector"
CYCLES_AT_ONCE = 8
WARM_CYCLES = 16
GOOD = r"""
while read -r line; do
    id=${line#*'"id":'}; id=${id%%[,\}]*}
    fresh='"resultType":"complete","ttlMs":0,"cacheScope":"private"'
    case $line in
        *server/discover*) answer='"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}' ;;
        *) answer='"tools":[{"name":"echo","inputSchema":{"type":"object"}}]' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":{%s,%s}}\n' "$id" "$fresh" "$answer"
done
"""
"""A server that starts hundreds of times: the shell does so in a fraction of an interpreter's time."""

_MEANINGS: dict[str, str] = {"bind": "PLURNK_HOST", "auth": "PLURNK_TOKEN"}


async def started(world: World, _step: Json) -> None:
    """Start the run's own daemon, or note how it refused."""
    if state := world.case.get("sql_state"):
        _write_state(world.daemon, state)
    await try_start(world, world.daemon)


async def try_start(world: World, daemon: Daemon) -> None:
    """Note whether the daemon serves, and what it said."""
    try:
        await daemon.start()
        world.facts["startup"] = "serves"
    except DaemonEndedError as ended:
        world.facts["startup"] = "fails"
        world.facts["exit"] = ended.status
    world.facts["output"] = daemon.log


async def started_with(world: World, step: Json) -> None:
    """Start a daemon beside the run's own, which the case expects to refuse."""
    given: dict[str, str] = step["start_with"]
    told = {_MEANINGS.get(name, name): value for name, value in given.items()}
    other = Daemon(world.directory / "other", {**SHARED_ENVIRONMENT, **told})
    other.token = told.get("PLURNK_TOKEN", other.token)
    try:
        await try_start(world, other)
    finally:
        other.close()


async def stopped(world: World, step: Json) -> None:
    """Signal the daemon and note its exit status and time."""
    record = world.begin("stop")
    began = now_ms()
    record.status = await world.daemon.stop(signal.Signals[step["stop"]])
    record.milliseconds = now_ms() - began
    record.ok = record.is_settled = True


async def restarted(world: World, step: Json) -> None:
    """End the daemon and start it again on what it kept, with what ``env`` changes; null unsets."""
    await world.daemon.stop()
    changed = {**world.daemon.environment, **step.get("env", {})}
    world.daemon.environment = {name: value for name, value in changed.items() if value is not None}
    await world.daemon.start()


async def started_and_ended(world: World, step: Json) -> None:
    """End the daemon in one of the ways and note how long that took from the cause."""
    way = step["start_and_end"]
    if way.startswith("SIG"):
        await world.daemon.start()
        await stopped(world, {"stop": way})
        return
    record = world.begin("stop")
    environment = {**world.daemon.environment, "PLURNK_LOG_LEVEL": "loudest"}
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        if way == "port in use":
            environment = {**world.daemon.environment, "PLURNK_PORT": str(taken.getsockname()[1])}
        world.daemon.environment = environment
        began = now_ms()
        world.daemon.process = world.daemon.spawn()
        record.status = await world.daemon.ended()
        record.milliseconds = now_ms() - began
    record.ok = record.is_settled = True


async def damaged(world: World, step: Json) -> None:
    """Put a damaged database where the daemon's was."""
    file = world.daemon.home / "plurnk.db"
    world.daemon.directory.mkdir()
    world.daemon.spawn_captured("migrate")
    whole = file.read_bytes()
    content = {
        "16 random KiB": os.urandom(16384),
        "valid header then zeros": whole[:100] + bytes(len(whole) - 100),
        "truncated in half": whole[: len(whole) // 2],
    }[step["write_db"]]
    file.write_bytes(content)
    world.facts["database"] = content


def _write_state(daemon: Daemon, statement: str) -> None:
    daemon.directory.mkdir(parents=True, exist_ok=True)
    daemon.home.mkdir(mode=0o700)
    file = daemon.home / "plurnk.db"
    file.touch(0o600)
    if not statement.startswith("--"):
        with closing(sqlite3.connect(file)) as connection:
            connection.execute(statement)
            connection.commit()


async def armed(world: World, _step: Json) -> None:
    """Let the daemon's files grow no further: the write-ahead log cannot take the next commit."""
    log, wal = world.daemon.log_file.stat().st_size, world.daemon.home / "plurnk.db-wal"
    limit = log + 4096
    assert wal.stat().st_size >= limit, "the daemon's log would be what is full"
    _limit_files(world.daemon.pid, limit)
    world.facts["armed"] = True


def disarm(world: World) -> None:
    """End the fault once it was met."""
    if world.facts.pop("armed", False):
        _limit_files(world.daemon.pid, resource.RLIM_INFINITY)


def _limit_files(pid: int, size: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def cycled(world: World, step: Json) -> None:
    """Attach and detach so often, and note what the daemon holds more than after the first few times."""
    server = _cycled_server(world, step["do"]["attach_detach"])
    await _cycles(world, server, WARM_CYCLES)
    world.facts["held"] = await held(world)
    ends = await _cycles(world, server, step["repeat"])
    assert ends == {(201, 200) if step["do"]["attach_detach"] == "good" else (502, 404)}, ends


def _cycled_server(world: World, variant: str) -> Json:
    base = {"name": "p", "transport": "stdio"}
    match variant:
        case "good":
            program = world.directory / "good.sh"
            program.write_text(GOOD)
            return {**base, "command": "sh", "args": [str(program)]}
        case "timeout":
            return {**base, "command": "sh", "args": ["-c", "while read -r line; do :; done"]}
        case _:
            return {**base, "command": "sh", "args": ["-c", "exit 1"]}


async def _cycles(world: World, server: Json, count: int) -> set[tuple[int, int]]:
    ends: list[tuple[int, int]] = []

    async def some(workspace: str) -> None:
        for _ in range(count // CYCLES_AT_ONCE):
            attached = await world.daemon.post(workspace, "workspace.mcp.attach", server=server)
            detached = await world.daemon.post(workspace, "workspace.mcp.detach", name="p")
            ends.append((attached.status_code, detached.status_code))

    async with anyio.create_task_group() as group:
        for number in range(CYCLES_AT_ONCE):
            group.start_soon(some, world.workspace(f"w{number}"))
    return set(ends)


async def held(world: World) -> dict[str, int]:
    """Return the descriptors, threads and tasks of the daemon."""
    process = anyio.Path(f"/proc/{world.daemon.pid}")
    counted = anyio.Path(world.daemon.environment["TASK_COUNT"])
    await counted.unlink(missing_ok=True)
    os.kill(world.daemon.pid, signal.SIGUSR2)
    with anyio.fail_after(10):
        while not await counted.exists():
            await anyio.sleep(0.01)
    return {
        "fd": len([each async for each in (process / "fd").iterdir()]),
        "thread": len([each async for each in (process / "task").iterdir()]),
        "task": int((await counted.read_text()).split()[0]),
    }


def memory(pid: int, name: str) -> float:
    """Return ``VmRSS`` or ``VmHWM`` of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(name)


def forget_peak(pid: int) -> None:
    """Let ``VmHWM`` begin again from what is resident now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


STARTS: dict[str, Callable[[World, Any], Awaitable[None]]] = {
    "start": started,
    "start_with": started_with,
    "stop": stopped,
    "restart": restarted,
    "start_and_end": started_and_ended,
    "write_db": damaged,
    "arm_fault": armed,
}
