"""The memory of a long life, and whether it grew. SPEC §limits.

What a daemon has in memory follows what it holds: connections, and for ten minutes the ends of operations. So a life
grows until it is as old as that, whatever it does, and its first minutes prove nothing: they are held against a bound
that only an outright leak breaks. From then on as much is forgotten as comes, and what still grows is left behind.
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
GROWTH_MAX: Final = 0.5
"""MiB a minute once as much is forgotten as comes."""
GROWTH_MAX_EARLY: Final = 40.0
"""MiB a minute before."""
POINTS_MIN: Final = 60
"""Fewer say nothing."""


@dataclass(frozen=True)
class Memory:
    """The resident set of one life."""

    points: list[tuple[float, float]]
    """Seconds since it began, and MiB."""

    @property
    def is_settled(self) -> bool:
        """Whether it lasted long enough to be judged."""
        return self._lasted >= SETTLED_LIFE * KEPT_S

    @property
    def judged(self) -> list[tuple[float, float]]:
        """The points after the warm-up."""
        warm = max(WARM_UP * self._lasted, KEPT_S if self.is_settled else 0.0)
        return [point for point in self.points if point[0] > warm]

    @property
    def growth(self) -> float:
        """MiB a minute after the warm-up."""
        return 60 * slope(self.judged)

    @property
    def growth_allowed(self) -> float:
        """MiB a minute that it may be."""
        return GROWTH_MAX if self.is_settled else GROWTH_MAX_EARLY

    def require_flat(self) -> None:
        """It did not grow by more than it may.

        Raises:
            AssertionError: it did.
        """
        is_judged = len(self.judged) >= POINTS_MIN
        assert not is_judged or self.growth <= self.growth_allowed, (
            self.growth,
            self.points[:: POINTS_MIN // 6],
        )

    def at_intervals(self, count: int) -> list[tuple[float, float]]:
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
