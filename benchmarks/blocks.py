"""Blocks of calls to several targets in turn, and the medians over the rounds.

In turn, because a machine has moods that last for seconds: what stands beside each other was measured beside each
other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.load import Sample
from benchmarks.targets import Backend, Target


@dataclass(frozen=True)
class Effort:
    """How long a scenario is measured."""

    rounds: int = 5
    block_s: float = 0.5
    """About how long one block takes."""
    least: int = 2
    """Calls of each connection that a block has at least."""


@dataclass(frozen=True)
class Figure:
    """What one target's calls cost: medians over the rounds."""

    scenario: str
    target: str
    in_flight: int
    cpu_ms: float
    p50_ms: float
    p99_ms: float
    rate: float
    requests: float
    """Requests that reached the backend for one call, over all rounds."""


async def measured(
    scenario: str,
    targets: Sequence[Target],
    *,
    in_flight: int,
    effort: Effort,
    backend: Backend | None = None,
) -> list[Figure]:
    """Return a figure for each target; the blocks of a round follow each other."""
    counts = {target.name: await _count_for(target, in_flight, effort) for target in targets}
    blocks: dict[str, list[tuple[Sample, float]]] = {target.name: [] for target in targets}
    requests = dict.fromkeys(counts, 0)
    for _ in range(effort.rounds):
        for target in targets:
            await target.run(in_flight, in_flight)  # connections are open again
            if backend is not None:
                backend.counts()
            before = target.cpu()
            sample = await target.run(in_flight, counts[target.name])
            blocks[target.name].append((sample, target.cpu() - before))
            if backend is not None:
                requests[target.name] += sum(backend.counts().values())
    return [_figure(scenario, name, in_flight, blocks[name], requests[name]) for name in blocks]


async def _count_for(target: Target, in_flight: int, effort: Effort) -> int:
    """Return how many calls fill a block, after two that warm the target up."""
    least = in_flight * effort.least
    await target.run(in_flight, least)
    warm = await target.run(in_flight, least * 2)
    return max(least, int(warm.rate * effort.block_s) // in_flight * in_flight)


def _figure(
    scenario: str, name: str, in_flight: int, blocks: Sequence[tuple[Sample, float]], requests: int
) -> Figure:
    calls = sum(len(sample.latencies) for sample, _ in blocks)
    return Figure(
        scenario,
        name,
        in_flight,
        cpu_ms=1000 * median(cpu / len(sample.latencies) for sample, cpu in blocks),
        p50_ms=1000 * median(sample.at(0.5) for sample, _ in blocks),
        p99_ms=1000 * median(sample.at(0.99) for sample, _ in blocks),
        rate=median(sample.rate for sample, _ in blocks),
        requests=requests / calls,
    )
