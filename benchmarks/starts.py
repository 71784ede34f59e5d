"""Starting the daemon with more and more servers in its database: until it is ready, until all are connected."""

import time
from collections.abc import Sequence
from pathlib import Path

import anyio

from benchmarks.load import Client
from benchmarks.rows import Row
from benchmarks.targets import LIST, Backend, Daemon, http_definitions

PER_WORKSPACE = 20
BOUNDED = 200
"""The number of servers that has a bound."""


async def starts(backend: Backend, directory: Path, numbers: Sequence[int]) -> list[Row]:
    """Return how long the daemon takes with each number of servers, in workspaces of twenty."""
    rows = list[Row]()
    for number in numbers:
        home = directory / str(number)
        await _attached(backend, home, number)
        ready, connected = await _started(home, number)
        bound = 0.5 if number == BOUNDED else None
        rows += [
            Row(f"{number} servers: from start to ready", ready, "s"),
            Row(f"{number} servers after a restart, from ready to connected", connected, "s", bound),
        ]
    return rows


async def _attached(backend: Backend, directory: Path, number: int) -> None:
    """Leave a database with so many servers."""
    daemon, urls = Daemon(directory), backend.servers(number)
    with daemon.process:
        await daemon.ready()
        for first in range(0, number, PER_WORKSPACE):
            await daemon.attach(http_definitions(urls[first:][:PER_WORKSPACE]), f"bench-{first}")


async def _started(directory: Path, number: int) -> tuple[float, float]:
    """Return the seconds from the start to ready, and from then until every workspace has all its servers."""
    daemon = Daemon(directory, {"PLURNK_HYDRATE": "eager"})
    with daemon.process:
        await daemon.ready()
        began = time.perf_counter()

        async def hydrated(workspace: str) -> None:
            client = Client(daemon.url)
            listed = await daemon.act(client, LIST, workspace)
            client.close()
            assert all(server["state"] == "connected" for server in listed["servers"])

        async with anyio.create_task_group() as group:
            for first in range(0, number, PER_WORKSPACE):
                group.start_soon(hydrated, f"bench-{first}")
        return daemon.ready_after, time.perf_counter() - began
