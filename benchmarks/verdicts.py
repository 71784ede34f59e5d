"""The ratios that matter, each with its bound: figures of one run, held against each other."""

from collections.abc import Callable, Iterator, Sequence

from benchmarks.blocks import Figure
from benchmarks.calls import ACROSS, FLOOR, OURS, SDK, WIRE
from benchmarks.rows import Row

HUB = "mcp-hub"
FLOORS = {FLOOR: "", ACROSS: " across the cores"}


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


def verdicts(measured: Sequence[Figure]) -> Iterator[Row]:
    """Yield the rows in order of weight."""
    figures, agui = Figures(measured), f"{OURS}, AG-UI"
    for number in (1, 32):
        ours, at = ("call", OURS, number), f"{number} in flight"
        yield Row(
            f"CPU a call, REST, to the SDK's client, {at}",
            figures.ratio(ours, ("call", SDK, number), _cpu),
            "x",
            0.5,
        )
        yield Row(
            f"CPU a call, REST, to {HUB}, {at}", figures.ratio(ours, ("call", HUB, number), _cpu), "x", 0.35
        )
        both = ("AG-UI call", agui, number), ("AG-UI call", OURS, number)
        yield Row(f"CPU a call, AG-UI, to REST, {at}", figures.ratio(*both, _cpu), "x", 2)
    for floor, where in FLOORS.items():
        ratio = figures.ratio(("call", OURS, 1), ("call", floor, 1), _p50)
        yield Row(f"p50 of one call after the other, REST, to the floor{where}", ratio, "x", 3)
    yield Row(
        f"calls/s at 32 in flight, to {HUB}",
        figures.ratio(("call", OURS, 32), ("call", HUB, 32), _rate),
        "x",
        3,
        is_floor=True,
    )
    busy = figures.of("call", OURS, 32)
    yield Row("p99 at 32 in flight, to its own p50", busy.p99_ms / busy.p50_ms if busy else None, "x", 5)
    yield Row(
        "stdio calls/s at 32 in flight, our wire to the SDK's client",
        figures.ratio(("stdio call", WIRE, 32), ("stdio call", SDK, 32), _rate), "x", 5, is_floor=True,
    )  # fmt: skip
    listing = figures.of("list", OURS, 1)
    yield Row("list of 20 servers, p50", listing and listing.p50_ms, "ms", 1)
    yield Row("list, backend requests", listing and listing.requests, "", 0)


def distances(measured: Sequence[Figure]) -> Iterator[tuple[str, float | None, float | None]]:
    """Yield how many times as long as at each floor everything takes that one call after the other went through."""
    figures = Figures(measured)
    for each in measured:
        if (each.scenario, each.in_flight) == ("call", 1):
            here, across = (
                figures.ratio(("call", each.target, 1), ("call", floor, 1), _p50) for floor in FLOORS
            )
            yield each.target, here, across
