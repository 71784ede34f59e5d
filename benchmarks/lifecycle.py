"""What is no call: attaching, memory, an idle hour, a hung server, the event loop's stalls. Of the daemon alone."""

import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import anyio

from benchmarks.blocks import Effort
from benchmarks.changes import changes
from benchmarks.load import Client
from benchmarks.peers.watched_daemon import WATCH
from benchmarks.processes import GATEWAY_CORE, Process
from benchmarks.rows import Row
from benchmarks.starts import PER_WORKSPACE, starts
from benchmarks.targets import CALL, Backend, Daemon, http_definition, http_definitions, posting
from benchmarks.workspaces import KIB, SETTLE_S, workspaces

MIB = 1024 * KIB


@dataclass(frozen=True)
class Extent:
    """How much is attached and started, and how long is waited."""

    servers: int = 200
    """Whose attachments are measured."""
    starts: tuple[int, ...] = (1, 20, 200)
    """With how many servers the daemon is started."""
    workspaces: int = 1000
    idle_s: float = 10
    connect_timeout_ms: int = 30_000


async def lifecycle(backend: Backend, directory: Path, *, extent: Extent, effort: Effort) -> list[Row]:
    """Return the figures, with the servers in workspaces of twenty."""
    return [
        *await _attachments(backend, directory / "attached", extent),
        *await _base(directory / "base"),
        *await starts(backend, directory / "starts", extent.starts),
        Row(
            "healthy server usable beside a hung one",
            await _beside_a_hung_one(backend, directory / "hung", extent.connect_timeout_ms),
            "s",
            0.3,
        ),
        Row(
            "longest stall of the event loop at 32 in flight",
            await _stall(backend, directory / "stall", effort),
            "ms",
            5,
        ),
        *await workspaces(backend, directory / "workspaces", extent.workspaces),
        *await changes(backend, directory / "changes"),
    ]


async def _base(directory: Path) -> list[Row]:
    """Return how long an empty daemon takes to be ready, its memory, and that above the imports alone."""
    daemon = Daemon(directory)
    command = [sys.executable, "-m", "benchmarks.peers.imports"]
    with daemon.process, Process(command, core=GATEWAY_CORE, talks=True) as imports:
        await daemon.ready()
        imports.line()
        await anyio.sleep(SETTLE_S)
        memory = daemon.process.memory() / MIB
        return [
            Row("no server: from start to ready", daemon.ready_after, "s"),
            Row("memory, empty", memory, "MiB"),
            Row("memory, empty, above the imports alone", memory - imports.memory() / MIB, "MiB", 15),
        ]


async def _attachments(backend: Backend, directory: Path, extent: Extent) -> list[Row]:
    """Return what an attachment costs, what it weighs when idle, also one of twenty tools, and an idle hour of all."""
    daemon, servers = Daemon(directory), extent.servers
    with daemon.process:
        await daemon.ready()
        # What the first attachments load and open is not what one more of them costs.
        await daemon.attach(http_definitions(backend.servers(PER_WORKSPACE)), "first")
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
        wide = await _wide(backend, daemon, servers)
        hour = await _idle_hour(daemon, extent.idle_s)
    of_an = "attach over HTTP"
    return [
        Row(f"{of_an}, CPU", 1000 * cpu / servers, "ms", 3),
        Row(f"{of_an}, p50", 1000 * median(latencies), "ms"),
        Row(f"{of_an}, backend requests, each after the other", requests / servers, "", 2),
        Row("memory of an idle attachment of ten tools", grown / servers / KIB, "KiB", 32),
        Row("memory of an idle attachment of twenty tools", wide / KIB, "KiB", 32),
        Row(
            f"CPU of an idle hour with {PER_WORKSPACE + 2 * servers} attachments, from {extent.idle_s:g} s",
            hour,
            "s",
        ),
    ]


async def _wide(backend: Backend, daemon: Daemon, servers: int) -> float:
    """Return the bytes that an idle attachment of twenty tools takes."""
    memory = daemon.process.memory()
    urls = backend.servers(servers, way="wide")
    for first in range(0, servers, PER_WORKSPACE):
        await daemon.attach(http_definitions(urls[first:][:PER_WORKSPACE]), f"wide-{first}")
    await anyio.sleep(SETTLE_S)
    return (daemon.process.memory() - memory) / servers


async def _idle_hour(daemon: Daemon, seconds: float) -> float:
    """Return the processor seconds of an hour in which nobody asks for anything, from some seconds of it."""
    before, began = daemon.process.cpu(), time.perf_counter()
    await anyio.sleep(seconds)
    return (daemon.process.cpu() - before) * 3600 / (time.perf_counter() - began)


async def _beside_a_hung_one(backend: Backend, directory: Path, connect_timeout_ms: int) -> float:
    """Return the seconds from ready until a healthy server answers a call while another one never answers."""
    [hung], healthy = backend.servers(1, way="hung"), backend.servers(PER_WORKSPACE - 1)
    first = Daemon(directory)
    with first.process:
        await first.ready()
        await first.attach(http_definitions(healthy))
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
        await daemon.attach(http_definitions(backend.servers(PER_WORKSPACE)))
        run = posting(daemon.url, daemon.action(CALL), expected=b"xxx")
        await run(32, 256)
        (directory / WATCH).touch()
        until = time.perf_counter() + effort.rounds * effort.block_s
        while time.perf_counter() < until:
            await run(32, 64)
    told = re.search(r"longest stall ([0-9.]+) ms", (directory / "daemon.log").read_text())
    assert told is not None
    return float(told[1])
