"""What is no call: attaching, memory, a restart, a hung server, the event loop's stalls. Of the daemon alone."""

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import anyio

from benchmarks.blocks import Effort
from benchmarks.load import Client
from benchmarks.peers.watched_daemon import WATCH
from benchmarks.processes import GATEWAY_CORE, Process
from benchmarks.targets import (
    CALL,
    LIST,
    Backend,
    Daemon,
    http_definition,
    posting,
)

PER_WORKSPACE = 20
SETTLE_S = 1.0
"""How long a process is left alone before its memory is read."""


@dataclass(frozen=True)
class Lifecycle:
    """The figures; times in milliseconds but for those that say seconds, memory in bytes."""

    attach_cpu_ms: float
    attach_p50_ms: float
    attach_requests: float
    """Backend requests of one attachment."""
    memory_per_attachment: float
    """Of ten tools."""
    memory_per_wide: float
    """Of twenty."""
    base_memory: float
    imports_memory: float
    """Of a process that only imports the libraries."""
    restart_s: float
    """From ready to all servers of all workspaces connected."""
    restart_servers: int
    ready_empty_s: float
    hung_s: float
    """From ready to a call of a healthy server beside a hung one, ``PLURNK_HYDRATION=isolate``."""
    stall_ms: float


async def lifecycle(
    backend: Backend, directory: Path, *, servers: int, effort: Effort, connect_timeout_ms: int = 30_000
) -> Lifecycle:
    """Return the figures, with so many servers attached, in workspaces of twenty."""
    base, imports, ready_empty = await _base_memory(directory / "base")
    attached = directory / "attached"
    cpu, p50, requests, grown, wide = await _attachments(backend, attached, servers, base=base)
    return Lifecycle(
        attach_cpu_ms=cpu,
        attach_p50_ms=p50,
        attach_requests=requests,
        memory_per_attachment=grown,
        memory_per_wide=wide,
        base_memory=base,
        imports_memory=imports,
        restart_s=await _restart(attached, servers),
        restart_servers=servers,
        ready_empty_s=ready_empty,
        hung_s=await _beside_a_hung_one(backend, directory / "hung", connect_timeout_ms),
        stall_ms=await _stall(backend, directory / "stall", effort),
    )


async def _base_memory(directory: Path) -> tuple[int, int, float]:
    """Return the memory of an empty daemon, that of the imports alone, and how long the daemon took to be ready."""
    daemon = Daemon(directory)
    command = [sys.executable, "-m", "benchmarks.peers.imports"]
    with daemon.process, Process(command, core=GATEWAY_CORE, talks=True) as imports:
        await daemon.ready()
        imports.line()
        await anyio.sleep(SETTLE_S)
        return daemon.process.memory(), imports.memory(), daemon.ready_after


async def _attachments(
    backend: Backend, directory: Path, servers: int, *, base: int
) -> tuple[float, float, float, float, float]:
    """Return processor time and latency of an attachment in ms, its requests, and the bytes it takes when idle.

    The last are those of one of twice as many tools.
    """
    daemon = Daemon(directory)
    with daemon.process:
        await daemon.ready()
        # What the first attachments load and open is not what one more of them costs.
        first = [
            http_definition(f"s{number}", url) for number, url in enumerate(backend.servers(PER_WORKSPACE))
        ]
        await daemon.attach(first, "first")
        await anyio.sleep(SETTLE_S)
        backend.counts()
        memory, cpu, latencies = daemon.process.memory(), daemon.process.cpu(), list[float]()
        client = Client(daemon.url)
        for number, url in enumerate(backend.servers(servers, first=PER_WORKSPACE)):
            definition = http_definition(f"s{number % PER_WORKSPACE}", url)
            began = time.perf_counter()
            attach = {"kind": "workspace.mcp.attach", "server": definition}
            await daemon.act(client, attach, f"bench-{number // PER_WORKSPACE}")
            latencies.append(time.perf_counter() - began)
        cpu = daemon.process.cpu() - cpu
        requests = sum(backend.counts().values())
        client.close()
        await anyio.sleep(SETTLE_S)
        grown = daemon.process.memory() - memory
        assert memory > base
        wide = await _wide(backend, daemon, servers)
    return 1000 * cpu / servers, 1000 * median(latencies), requests / servers, grown / servers, wide


async def _wide(backend: Backend, daemon: Daemon, servers: int) -> float:
    """Return the bytes that an idle attachment of twenty tools takes."""
    memory = daemon.process.memory()
    urls = backend.servers(servers, way="wide")
    for first in range(0, servers, PER_WORKSPACE):
        some = [http_definition(f"s{number}", url) for number, url in enumerate(urls[first:][:PER_WORKSPACE])]
        await daemon.attach(some, f"wide-{first}")
    await anyio.sleep(SETTLE_S)
    return (daemon.process.memory() - memory) / servers


async def _restart(directory: Path, servers: int) -> float:
    """Return the seconds from ready until every workspace has all its servers connected."""
    daemon = Daemon(directory, {"PLURNK_HYDRATE": "eager"})
    with daemon.process:
        await daemon.ready()
        began = time.perf_counter()

        async def hydrated(workspace: str) -> None:
            listed = await daemon.act(Client(daemon.url), LIST, workspace)
            assert all(server["state"] == "connected" for server in listed["servers"])

        async with anyio.create_task_group() as group:
            for number in range((servers + PER_WORKSPACE - 1) // PER_WORKSPACE):
                group.start_soon(hydrated, f"bench-{number}")
        return time.perf_counter() - began


async def _beside_a_hung_one(backend: Backend, directory: Path, connect_timeout_ms: int) -> float:
    """Return the seconds from ready until a healthy server answers a call while another one never answers."""
    [hung], healthy = backend.servers(1, way="hung"), backend.servers(PER_WORKSPACE - 1)
    first = Daemon(directory)
    with first.process:
        await first.ready()
        await first.attach([http_definition(f"s{number}", url) for number, url in enumerate(healthy)])
    timeout = {"PLURNK_MCP_CONNECT_TIMEOUT": str(connect_timeout_ms)}
    daemon = Daemon(directory, {"PLURNK_MCP_HUNG": hung, "PLURNK_HYDRATION": "isolate", **timeout})
    with daemon.process:
        await daemon.ready()
        began = time.perf_counter()
        await Client(daemon.url).send(daemon.action(CALL), expected=b"xxx")
        return time.perf_counter() - began


async def _stall(backend: Backend, directory: Path, effort: Effort) -> float:
    """Return the longest stall of the event loop in ms while 32 calls are in flight; see ``watched_daemon``."""
    daemon = Daemon(directory, program="benchmarks.peers.watched_daemon")
    with daemon.process:
        await daemon.ready()
        urls = backend.servers(PER_WORKSPACE)
        await daemon.attach([http_definition(f"s{number}", url) for number, url in enumerate(urls)])
        run = posting(daemon.url, daemon.action(CALL), expected=b"xxx")
        await run(32, 256)
        (directory / WATCH).touch()
        until = time.perf_counter() + effort.rounds * effort.block_s
        while time.perf_counter() < until:
            await run(32, 64)
    told = re.search(r"longest stall ([0-9.]+) ms", (directory / "daemon.log").read_text())
    assert told is not None
    return float(told[1])
