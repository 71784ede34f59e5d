"""How long to wait before a lost server is started again. SPEC §connection.

Pure: the connection's owner waits, and says how long the server was healthy.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """The policy; seconds."""

    first: float = 1.0
    ceiling: float = 60.0
    healthy_after: float = 60.0
    """A server that was ready this long has earned the first delay again."""
    jitter: float = 0.2
    """The largest part of a delay that chance takes off, so that servers lost together return apart."""


class Attempts:
    """Counts the restarts of one connection and says how long to wait before each."""

    def __init__(self, backoff: Backoff, *, chance: Callable[[], float] = random.random) -> None:
        self._backoff = backoff
        self._chance = chance
        self._count = 0

    @property
    def count(self) -> int:
        """Restarts since the server was last healthy."""
        return self._count

    def delay_after(self, ready_for: float) -> float:
        """Return the seconds to wait before the next start of a server that was ready this many seconds.

        A start that failed was ready for none.
        """
        if ready_for >= self._backoff.healthy_after:
            self._count = 0
        # Beyond 64 doublings every ceiling is reached, and a float would overflow.
        delay = min(self._backoff.ceiling, self._backoff.first * 2.0 ** min(self._count, 64))
        self._count += 1
        return delay * (1.0 - self._backoff.jitter * self._chance())
