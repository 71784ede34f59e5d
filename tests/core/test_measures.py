"""Counting: exact numbers by labels, buckets by bounds, connections in the state they are in."""

import pytest

from app.core.connection_state import ConnectionState
from app.core.measures import BOUNDS_S, Counter, Histogram, Measures, single

pytestmark = pytest.mark.spec("observe")


def test_a_counter_counts_by_the_values_of_its_labels() -> None:
    counter = Counter("n", "m", "kind", "outcome")
    for values in [("a", "ok"), ("a", "ok"), ("a", "no"), ("b", "ok")]:
        counter.add(*values)
    assert counter.values == {("a", "ok"): 2, ("a", "no"): 1, ("b", "ok"): 1}


@pytest.mark.parametrize(
    "seconds, bucket",
    [(0.0, 0), (BOUNDS_S[0], 0), (0.0011, 1), (BOUNDS_S[-1], len(BOUNDS_S) - 1), (61.0, len(BOUNDS_S))],
)
def test_a_duration_falls_into_the_first_bucket_that_holds_it(seconds: float, bucket: int) -> None:
    histogram = Histogram("n", "m", "kind")
    histogram.add(seconds, "a")
    durations = histogram.values["a",]
    assert durations.buckets == [int(place == bucket) for place in range(len(BOUNDS_S) + 1)]
    assert durations.seconds == seconds


def test_a_gauge_is_read_when_somebody_asks() -> None:
    held = [1]
    gauge = single("n", "m", lambda: len(held))
    held.append(2)
    assert gauge.read() == {(): 2}


def test_a_connection_is_counted_in_its_state_until_it_is_over() -> None:
    measures = Measures()
    (gauge,) = measures.gauges
    nothing = gauge.read()
    assert set(nothing.values()) == {0}
    assert set(nothing) == {
        ("preparing",),
        ("authorization-required",),
        ("ready",),
        ("recovering",),
        ("retiring",),
    }
    state = ConnectionState
    moves = [
        (None, state.PREPARING),
        (None, state.PREPARING),
        (state.PREPARING, state.READY),
        (state.PREPARING, state.FAILED),
        (state.FAILED, state.FAILED),
    ]
    for before, after in moves:
        measures.connection_moved(before, after)
    assert gauge.read() == {**nothing, ("ready",): 1}
    measures.connection_moved(state.READY, state.RETIRING)
    measures.connection_moved(state.RETIRING, state.CLOSED)
    assert gauge.read() == nothing


def test_everything_that_is_counted_is_shown_once() -> None:
    measures = Measures()
    shown = [*measures.counters, *measures.histograms]
    assert {id(each) for each in shown} == {
        id(each) for each in vars(measures).values() if isinstance(each, Counter | Histogram)
    }
    names = [each.name for each in (*shown, *measures.gauges)]
    assert len(names) == len(set(names))
