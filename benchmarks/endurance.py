"""Full load for minutes: 32 calls in flight, minute by minute. What is flat has the last minutes like the first."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.blocks import Figure
from benchmarks.load import Sample
from benchmarks.rows import Row
from benchmarks.targets import CALL, Backend, Daemon, http_definitions, posting

IN_FLIGHT = 32
SERVERS = 20
MIB = 1024 * 1024


@dataclass(frozen=True)
class Minute:
    """One of them."""

    figure: Figure
    memory: int


async def endurance(
    backend: Backend, directory: Path, *, minutes: int, seconds: float = 60
) -> tuple[list[Figure], list[Row]]:
    """Return the figures of each minute, and how the last third of them differs from the first.

    The first minute is no part of it: operations that ended are kept, a thousand of them, and a pool is filled.
    """
    daemon, course = Daemon(directory), list[Minute]()
    with daemon.process:
        await daemon.ready()
        await daemon.attach(http_definitions(backend.servers(SERVERS)))
        run = posting(daemon.url, daemon.action(CALL), expected=b"xxx")
        for number in range(1, minutes + 1):
            backend.counts()
            cpu, until, samples = daemon.process.cpu(), time.perf_counter() + seconds, list[Sample]()
            while not samples or time.perf_counter() < until:
                samples.append(await run(IN_FLIGHT, IN_FLIGHT * 16))
            cpu, requests = daemon.process.cpu() - cpu, sum(backend.counts().values())
            course.append(Minute(_figure(number, samples, cpu, requests), daemon.process.memory()))
    return [each.figure for each in course], list(flatness(course))


def _figure(number: int, samples: Sequence[Sample], cpu: float, requests: int) -> Figure:
    calls = sum(len(sample.latencies) for sample in samples)
    return Figure(
        f"minute {number} of full load",
        "plurnk-mcpd",
        IN_FLIGHT,
        cpu_ms=1000 * cpu / calls,
        p50_ms=1000 * median(sample.at(0.5) for sample in samples),
        p99_ms=1000 * median(sample.at(0.99) for sample in samples),
        rate=median(sample.rate for sample in samples),
        requests=requests / calls,
    )


def flatness(course: Sequence[Minute]) -> Iterator[Row]:
    """Yield how far the last third is from the first, the first minute left out."""
    settled = course[1:] or course
    third = max(1, len(settled) // 3)
    first, last = settled[:third], settled[-third:]
    of = f"{len(course)} minutes of full load"

    def ratio(value: Callable[[Figure], float]) -> float:
        return median(value(each.figure) for each in last) / median(value(each.figure) for each in first)

    grown = median(each.memory for each in last) - median(each.memory for each in first)
    yield Row(f"{of}: p50, its last third to its first", ratio(lambda figure: figure.p50_ms), "x", 1.2)
    yield Row(f"{of}: CPU a call, its last third to its first", ratio(lambda figure: figure.cpu_ms), "x")
    yield Row(f"{of}: memory gained a minute", grown / MIB / max(1, len(settled) - third), "MiB", 1)
    yield Row(f"{of}: memory at its end", course[-1].memory / MIB, "MiB")
