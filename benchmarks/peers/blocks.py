"""The loop of a client that is its own load: lines of ``IN_FLIGHT COUNT`` in, one line of JSON out for each."""

import json
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict

import anyio

from benchmarks.load import Run, Sample

Call = Callable[[], Awaitable[object]]


async def run_blocks(call: Call) -> None:
    """Say that the client is ready, and run every block of calls that standard input asks for."""

    async def run(in_flight: int, count: int) -> Sample:
        return await _block(call, in_flight, count)

    await answer_blocks(run)


async def answer_blocks(run: Run) -> None:
    """Say that the client is ready, and have every block run that standard input asks for."""
    _say("ready")
    while line := await anyio.to_thread.run_sync(sys.stdin.readline):
        _say(json.dumps(asdict(await run(*map(int, line.split())))))


async def _block(call: Call, in_flight: int, count: int) -> Sample:
    """Return what the block took."""
    latencies: list[float] = []

    async def turns() -> None:
        for _ in range(max(1, count // in_flight)):
            began = time.perf_counter()
            await call()
            latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(in_flight):
            group.start_soon(turns)
    return Sample(time.perf_counter() - began, tuple(sorted(latencies)))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
