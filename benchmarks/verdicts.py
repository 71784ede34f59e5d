"""The ratios that matter, each with its bound: figures of one run, held against each other."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.blocks import Figure
from benchmarks.calls import FLOOR, OURS, SDK, WIRE
from benchmarks.lifecycle import Lifecycle

HUB = "mcp-hub"
MIB = 1024 * 1024


@dataclass(frozen=True)
class Verdict:
    """One row of the table of bounds."""

    row: str
    measured: float | None
    """None where what it is compared with was not measured."""
    bound: float
    unit: str
    is_floor: bool = False
    """Whether the bound is the least, not the most."""

    @property
    def word(self) -> str:
        """What came of it."""
        if self.measured is None:
            return "not measured"
        is_met = self.measured >= self.bound if self.is_floor else self.measured <= self.bound
        return "met" if is_met else "NOT met"


class Figures:
    """The figures of a run by scenario, target and calls in flight."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._by_key = {(each.scenario, each.target, each.in_flight): each for each in figures}

    def of(self, scenario: str, target: str, in_flight: int) -> Figure | None:
        """Return the figure, where it was measured."""
        return self._by_key.get((scenario, target, in_flight))

    def ratio(
        self, one: tuple[str, str, int], other: tuple[str, str, int], value: Callable[[Figure], float]
    ) -> float | None:
        """Return how many times the other's value the one's is."""
        above, below = self.of(*one), self.of(*other)
        return value(above) / value(below) if above is not None and below is not None else None


def _cpu(figure: Figure) -> float:
    return figure.cpu_ms


def _p50(figure: Figure) -> float:
    return figure.p50_ms


def _rate(figure: Figure) -> float:
    return figure.rate


def verdicts(measured: Sequence[Figure], life: Lifecycle | None) -> Iterator[Verdict]:
    """Yield the rows in order of weight."""
    figures, agui = Figures(measured), f"{OURS}, AG-UI"
    for number in (1, 32):
        ours, at = ("call", OURS, number), f"{number} in flight"
        yield Verdict(
            f"CPU a call, REST, to the SDK's client, {at}",
            figures.ratio(ours, ("call", SDK, number), _cpu),
            0.5,
            "x",
        )
        yield Verdict(
            f"CPU a call, REST, to {HUB}, {at}", figures.ratio(ours, ("call", HUB, number), _cpu), 0.35, "x"
        )
        both = ("AG-UI call", agui, number), ("AG-UI call", OURS, number)
        yield Verdict(f"CPU a call, AG-UI, to REST, {at}", figures.ratio(*both, _cpu), 2, "x")
    yield Verdict(
        "p50 of one call after the other, REST, to the floor",
        figures.ratio(("call", OURS, 1), ("call", FLOOR, 1), _p50),
        3,
        "x",
    )
    yield Verdict(
        f"calls/s at 32 in flight, to {HUB}",
        figures.ratio(("call", OURS, 32), ("call", HUB, 32), _rate),
        3,
        "x",
        is_floor=True,
    )
    busy = figures.of("call", OURS, 32)
    yield Verdict("p99 at 32 in flight, to its own p50", busy.p99_ms / busy.p50_ms if busy else None, 5, "x")
    yield Verdict(
        "stdio calls/s at 32 in flight, our wire to the SDK's client",
        figures.ratio(("stdio call", WIRE, 32), ("stdio call", SDK, 32), _rate), 5, "x", is_floor=True,
    )  # fmt: skip
    listing = figures.of("list", OURS, 1)
    yield Verdict("list of 20 servers, p50", listing and listing.p50_ms, 1, "ms")
    yield Verdict("list, backend requests", listing and listing.requests, 0, "")
    if life is not None:
        yield from _of_lifecycle(life)


def _of_lifecycle(life: Lifecycle) -> Iterator[Verdict]:
    yield Verdict("attach over HTTP, CPU", life.attach_cpu_ms, 3, "ms")
    yield Verdict("attach over HTTP, backend requests, each after the other", life.attach_requests, 2, "")
    yield Verdict(
        f"{life.restart_servers} servers after a restart, from ready to connected", life.restart_s, 0.5, "s"
    )
    yield Verdict("memory of an idle attachment of ten tools", life.memory_per_attachment / 1024, 32, "KiB")
    yield Verdict("memory of an idle attachment of twenty tools", life.memory_per_wide / 1024, 32, "KiB")
    yield Verdict(
        "memory, empty, above the imports alone", (life.base_memory - life.imports_memory) / MIB, 15, "MiB"
    )
    yield Verdict("healthy server usable beside a hung one", life.hung_s, 0.3, "s")
    yield Verdict("longest stall of the event loop at 32 in flight", life.stall_ms, 5, "ms")
