"""Blocks of calls to several targets in turn, and the medians over the rounds.

In turn, because a machine has moods that last for seconds: what stands beside each other was measured beside each
other.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

import anyio

from benchmarks.load import AnsweredWrong, Sample
from benchmarks.targets import Backend, Target

LONGEST_S = 120
"""After which a block will never end."""


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
    """Return a figure for each target; the blocks of a round follow each other.

    Raises:
        AnsweredWrong: the daemon did. Whatever else does is left out, which is said.
    """
    courses = [_Course(target, in_flight, backend) for target in targets]
    for number in range(effort.rounds + 1):
        for course in tuple(courses):
            try:
                await (course.block() if number else course.warm_up(effort))
            except (AnsweredWrong, OSError) as failure:
                if not course.target.may_fail:
                    raise
                courses.remove(course)
                why = str(failure)[-400:] or type(failure).__name__
                sys.stderr.write(
                    f"left out of {scenario}, {in_flight} in flight: {course.target.name}: {why}\n"
                )
    return [course.figure(scenario) for course in courses]


@dataclass
class _Course:
    """One target's way through a scenario."""

    target: Target
    in_flight: int
    backend: Backend | None
    count: int = 0
    """Calls of one block."""
    blocks: list[tuple[Sample, float]] = field(default_factory=list[tuple[Sample, float]])
    requests: int = 0

    async def warm_up(self, effort: Effort) -> None:
        """Warm the target up, then find out how many calls fill a block."""
        least = self.in_flight * effort.least
        await self._run(least)
        warm = await self._run(least * 2)
        if self.target.warm_s:
            await self._run(self._filling(warm, self.target.warm_s, least))
        warm = await self._run(self._filling(warm, effort.block_s / 4, least))
        self.count = self._filling(warm, effort.block_s, least)

    def _filling(self, sample: Sample, seconds: float, least: int) -> int:
        """Return how many calls take so long at the sample's rate."""
        return max(least, int(sample.rate * seconds) // self.in_flight * self.in_flight)

    async def block(self) -> None:
        """Run one."""
        await self._run(self.in_flight)  # connections are open again
        if self.backend is not None:
            self.backend.counts()
        before = self.target.cpu()
        sample = await self._run(self.count)
        self.blocks.append((sample, self.target.cpu() - before))
        if self.backend is not None:
            self.requests += sum(self.backend.counts().values())

    async def _run(self, count: int) -> Sample:
        with anyio.fail_after(LONGEST_S):
            return await self.target.run(self.in_flight, count)

    def figure(self, scenario: str) -> Figure:
        """Return the medians."""
        calls = sum(len(sample.latencies) for sample, _ in self.blocks)
        return Figure(
            scenario,
            self.target.name,
            self.in_flight,
            cpu_ms=1000 * median(cpu / len(sample.latencies) for sample, cpu in self.blocks),
            p50_ms=1000 * median(sample.at(0.5) for sample, _ in self.blocks),
            p99_ms=1000 * median(sample.at(0.99) for sample, _ in self.blocks),
            rate=median(sample.rate for sample, _ in self.blocks),
            requests=self.requests / calls,
        )
