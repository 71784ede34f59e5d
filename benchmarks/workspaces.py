"""Many workspaces used for the first time, 32 at once: their processor time, their memory, what a server sees."""

from collections import deque
from collections.abc import Iterable
from pathlib import Path

import anyio

from benchmarks.load import Client
from benchmarks.rows import Row
from benchmarks.targets import LIST, Backend, Daemon

KINDS = (
    ("no server", None),
    ("one public server", "public"),
    ("one server whose lists nobody may keep", "s"),
)
"""What all of them have as a service default, and the way of the backend that is it."""
AT_ONCE = 32
KIB = 1024
SETTLE_S = 1.0
"""How long a process is left alone before its memory is read."""


async def workspaces(backend: Backend, directory: Path, number: int) -> list[Row]:
    """Return what so many cost that have no server, share a public one, or have one that none may share."""
    rows = list[Row]()
    for what, way in KINDS:
        server = {} if way is None else {"PLURNK_MCP_SHARED": backend.servers(1, way=way)[0]}
        rows += await _first_uses(backend, Daemon(directory / str(way), server), number, what)
    return rows


async def _first_uses(backend: Backend, daemon: Daemon, number: int, what: str) -> list[Row]:
    """Return the figures of one kind."""
    early = min(AT_ONCE, number // 2)
    """What the first ones load and open is not what one more of them costs."""
    with daemon.process:
        await daemon.ready()
        backend.counts()
        await _use(daemon, range(early))
        await anyio.sleep(SETTLE_S)
        memory, cpu = daemon.process.memory(), daemon.process.cpu()
        await _use(daemon, range(early, number))
        cpu = daemon.process.cpu() - cpu
        await anyio.sleep(SETTLE_S)
        memory = daemon.process.memory() - memory
        lists = backend.counts().get("tools/list", 0)
    late, of = number - early, f"{number} workspaces, {what}"
    return [
        Row(f"{of}: list requests to the server", lists, "", 1 if "public" in what else None),
        Row(f"{of}: CPU of a first use", 1000 * cpu / late, "ms"),
        Row(f"{of}: memory of each", memory / late / KIB, "KiB"),
    ]


async def _use(daemon: Daemon, numbers: Iterable[int]) -> None:
    """List the servers of each of these workspaces, so many at once."""
    waiting = deque(numbers)

    async def uses() -> None:
        client = Client(daemon.url)
        while waiting:
            listed = await daemon.act(client, LIST, f"w{waiting.popleft()}")
            assert all(server["state"] == "connected" for server in listed["servers"])
        client.close()

    async with anyio.create_task_group() as group:
        for _ in range(AT_ONCE):
            group.start_soon(uses)
