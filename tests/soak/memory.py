"""The memory of a long life, and whether it grew. SPEC §limits.

What a daemon has in memory follows what it holds: connections, and for ten minutes the ends of operations. So a life
grows until it is as old as that, whatever it does, and its first minutes prove nothing: they are held against a bound
that only an outright leak breaks. From then on as much is forgotten as comes.

Connections may still become more then, which with few clients takes an hour to settle, and are allowed for. And a
resident set hardly ever shrinks. What proves is the end: once all is detached, and the ends of operations are not kept
any more, Python holds as many blocks as before the first client.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.operations.settled import KEPT_S

WARM_UP: Final = 0.4
"""The part of a life that passes before its memory counts, where it is too short to settle."""
SETTLED_LIFE: Final = 1.5
"""How often the time that ends are kept a life must last for its rest to be judged as settled."""
GROWTH_MAX: Final = 1.0
"""MiB a minute once as much is forgotten as comes."""
CONNECTION_MIB: Final = 0.2
"""What a connection may add, with what belongs to it."""
GROWTH_MAX_EARLY: Final = 40.0
"""MiB a minute before."""
POINTS_MIN: Final = 30
"""Fewer say nothing."""
REST_S: Final = KEPT_S + 30
"""How long a daemon that holds nothing is left alone, where its blocks are judged."""
BLOCKS_LEFT_MAX: Final = 40_000
"""Blocks that bounded caches may have added to the half million that it held before the first client."""


@dataclass(frozen=True)
class Memory:
    """The resident set of one life."""

    points: list[tuple[float, float, float]]
    """Seconds since it began, MiB, and connections."""

    @property
    def is_settled(self) -> bool:
        """Whether it lasted long enough to be judged."""
        return self._lasted >= SETTLED_LIFE * KEPT_S

    @property
    def judged(self) -> list[tuple[float, float, float]]:
        """The points after the warm-up."""
        warm = max(WARM_UP * self._lasted, KEPT_S if self.is_settled else 0.0)
        return [point for point in self.points if point[0] > warm]

    @property
    def growth(self) -> float:
        """MiB a minute after the warm-up."""
        return 60 * slope([(seconds, mib) for seconds, mib, _ in self.judged])

    @property
    def growth_allowed(self) -> float:
        """MiB a minute that it may be."""
        more = 60 * slope([(seconds, connections) for seconds, _, connections in self.judged])
        return GROWTH_MAX + CONNECTION_MIB * max(0.0, more) if self.is_settled else GROWTH_MAX_EARLY

    def require_flat(self) -> None:
        """It did not grow by more than it may.

        Raises:
            AssertionError: it did.
        """
        is_judged = len(self.judged) >= POINTS_MIN
        assert not is_judged or self.growth <= self.growth_allowed, (
            self.growth,
            self.growth_allowed,
            self.at_intervals(20),
        )

    def at_intervals(self, count: int) -> list[tuple[float, float, float]]:
        """Return so many of the points, evenly spread, the last one among them."""
        last = len(self.points) - 1
        return [self.points[last * number // count] for number in range(count + 1)] if self.points else []

    @property
    def _lasted(self) -> float:
        return self.points[-1][0] if self.points else 0.0


def resident_mib(pid: int) -> float:
    """Return the resident set of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"^VmRSS:\s+(\d+)", status, flags=re.MULTILINE)[0]) / 1024


def slope(points: list[tuple[float, float]]) -> float:
    """Return the least-squares slope of the points."""
    if not points:
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread if spread else 0.0
