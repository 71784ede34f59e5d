"""What a daemon holds, seen from outside: what nothing may be left of. SPEC §connection, §limits, §shutdown."""

import os
import re
import signal
from dataclasses import dataclass
from pathlib import Path

import anyio

from tests.support.daemon import Daemon
from tests.support.processes import children, command_lines

INSPECTOR = Path(__file__).parents[1] / "faults" / "inspector"
"""Lets SIGUSR2 write the numbers of the daemon's tasks and blocks to the file that TASK_COUNT names."""
GAUGES = (
    "plurnk_connections",
    "plurnk_open_operations",
    "plurnk_pending_authorizations",
    "plurnk_open_streams",
)
FILES = {"plurnk.db", "plurnk.db-wal", "plurnk.db-shm", "daemon.json", "lock", "children"}


@dataclass(frozen=True)
class Remains:
    """What a daemon holds that nobody uses."""

    tasks: int
    """Beside the owner task of each workspace in memory."""
    threads: int
    descriptors: int
    children: tuple[str, ...]
    """The command lines of all descendants but the reaper; zombies have an empty one."""
    gauges: tuple[tuple[str, float], ...]
    blocks: int
    """Pieces of memory that Python holds, garbage left out."""
    files: tuple[str, ...]
    """What lies in the home and the directory for temporary files beside what always does."""


async def remains(daemon: Daemon) -> Remains:
    """Return what the daemon holds now."""
    process = Path(f"/proc/{daemon.pid}")
    text = await _metrics(daemon)
    lines = command_lines(children(daemon.pid)).values()
    tasks, blocks = await _inside(daemon)
    found = [each.name for each in daemon.home.iterdir() if each.name not in FILES]
    return Remains(
        tasks=tasks - int(_sum(text, "plurnk_workspaces")),
        threads=len(list((process / "task").iterdir())),
        descriptors=len(list((process / "fd").iterdir())),
        children=tuple(sorted(line for line in lines if "reaper_process" not in line)),
        blocks=blocks,
        gauges=tuple((name, _sum(text, name)) for name in GAUGES),
        files=tuple(sorted([*found, *(each.name for each in temporary(daemon).iterdir())])),
    )


async def connections(daemon: Daemon) -> float:
    """Return how many connections to servers there are."""
    return _sum(await _metrics(daemon), "plurnk_connections")


def temporary(daemon: Daemon) -> Path:
    """Return the directory that the daemon and its children have for temporary files."""
    return daemon.directory / "tmp"


async def _inside(daemon: Daemon) -> tuple[int, int]:
    """Return the numbers of tasks and of blocks."""
    counted = anyio.Path(daemon.directory / "tasks")
    await counted.unlink(missing_ok=True)
    os.kill(daemon.pid, signal.SIGUSR2)
    with anyio.fail_after(20):
        while not await counted.exists():
            await anyio.sleep(0.01)
    tasks, blocks = (await counted.read_text()).split()
    return int(tasks), int(blocks)


async def _metrics(daemon: Daemon) -> str:
    async with daemon.client() as client:
        return (await client.get("/metrics")).text


def _sum(text: str, name: str) -> float:
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, flags=re.MULTILINE))
