"""What the daemon counts: plain numbers in memory, named as ``GET /metrics`` shows them. SPEC §observe.

Counting is one look-up in a dictionary, on the daemon's event loop alone; nothing is formatted before somebody asks.
Every label has few values, all of them words of this house: kinds, outcomes, states, never a name that somebody chose.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from app.core.connection_state import ConnectionState

Labels: TypeAlias = tuple[str, ...]
"""The values of a measure's labels, in its order."""

BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds of a histogram's buckets; the last bucket has none."""
_OVER: Final = frozenset({ConnectionState.CLOSED, ConnectionState.FAILED})


class Counter:
    """How often something happened, since the daemon started."""

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = labels
        self.values: defaultdict[Labels, int] = defaultdict(int)

    def add(self, *values: str) -> None:
        """Count one more with these values of the labels."""
        self.values[values] += 1


@dataclass(slots=True)
class Durations:
    """How long one kind of thing took; mutable."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    """How many took at most each bound and more than the one before; the last, more than all."""
    seconds: float = 0.0
    """All of them together."""


class Histogram:
    """How long something took, since the daemon started."""

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        self.name = name
        self.meaning = meaning
        self.labels = labels
        self.values: defaultdict[Labels, Durations] = defaultdict(Durations)

    def add(self, seconds: float, *values: str) -> None:
        """Count one more that took so long, with these values of the labels."""
        durations = self.values[values]
        durations.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        durations.seconds += seconds


@dataclass(frozen=True, slots=True)
class Gauge:
    """How many there are, read when somebody asks."""

    name: str
    meaning: str
    labels: Labels
    read: Callable[[], Mapping[Labels, int]]


def single(name: str, meaning: str, read: Callable[[], int]) -> Gauge:
    """Return a gauge without labels."""
    return Gauge(name, meaning, (), lambda: {(): read()})


class Measures:
    """Everything that is counted where it happens. One a daemon."""

    def __init__(self) -> None:
        self.actions = Counter("plurnk_actions_total", "Actions that ended.", "kind", "outcome")
        self.action_seconds = Histogram(
            "plurnk_action_duration_seconds", "From an action's begin to its end.", "kind"
        )
        self.operations = Counter("plurnk_operations_total", "Operations that ended.", "kind", "ending")
        self.requests = Counter(
            "plurnk_upstream_requests_total", "Requests to servers that ended.", "transport", "outcome"
        )
        self.request_seconds = Histogram(
            "plurnk_upstream_request_duration_seconds", "From a request's begin to its end.", "transport"
        )
        self.preparations = Counter(
            "plurnk_preparations_total", "Preparations of a connection that ended.", "transport", "outcome"
        )
        self.restarts = Counter("plurnk_restarts_total", "Restarts of lost children.", "outcome")
        self.refreshes = Counter("plurnk_refreshes_total", "Refreshes of changed lists.", "outcome")
        self.cache_lookups = Counter(
            "plurnk_cache_lookups_total", "Looks into the caches of answers.", "cache", "outcome"
        )
        self._connections = {(str(state),): 0 for state in ConnectionState if state not in _OVER}

    @property
    def counters(self) -> tuple[Counter, ...]:
        """Every counter."""
        return (
            self.actions,
            self.operations,
            self.requests,
            self.preparations,
            self.restarts,
            self.refreshes,
            self.cache_lookups,
        )

    @property
    def histograms(self) -> tuple[Histogram, ...]:
        """Every histogram."""
        return (self.action_seconds, self.request_seconds)

    @property
    def gauges(self) -> tuple[Gauge, ...]:
        """Every gauge that is kept here."""
        connections = Gauge(
            "plurnk_connections", "Connections that are not over.", ("state",), lambda: {**self._connections}
        )
        return (connections,)

    def connection_moved(self, before: ConnectionState | None, after: ConnectionState) -> None:
        """Count the connection in its state; ``before`` is None for one that begins."""
        if before is not None and before not in _OVER:
            self._connections[before,] -= 1
        if after not in _OVER:
            self._connections[after,] += 1
