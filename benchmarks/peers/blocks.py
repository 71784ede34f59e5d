"""The loop of a client that is its own load: lines of ``IN_FLIGHT COUNT`` in, one line of JSON out for each."""

import json
import sys
import time
from collections.abc import Awaitable, Callable

import anyio

Call = Callable[[], Awaitable[object]]


async def run_blocks(call: Call) -> None:
    """Say that the client is ready, and run every block that standard input asks for."""
    _say("ready")
    while line := await anyio.to_thread.run_sync(sys.stdin.readline):
        in_flight, count = map(int, line.split())
        _say(json.dumps(await _block(call, in_flight, count)))


async def _block(call: Call, in_flight: int, count: int) -> dict[str, object]:
    """Return the seconds the block took and the latency of every call, sorted."""
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
    return {"seconds": time.perf_counter() - began, "latencies": sorted(latencies)}


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
