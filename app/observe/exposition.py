"""The daemon's measures in the text format of Prometheus, by its own library. SPEC §observe.

Counts nothing itself: each scrape reads the numbers as they are.
"""

from collections.abc import Generator, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from app.core.measures import BOUNDS_S, Counter, Durations, Gauge, Histogram, Measures


class Exposition:
    """One registry a daemon, with its measures and its process in it."""

    def __init__(self, measures: Measures, gauges: Sequence[Gauge]) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Measured(measures, gauges))
        ProcessCollector(registry=self._registry)

    def __call__(self) -> bytes:
        """Return everything as it is now, in the text format 0.0.4."""
        return generate_latest(self._registry)


class _Measured(Collector):
    """Gives the library what the daemon counted."""

    def __init__(self, measures: Measures, gauges: Sequence[Gauge]) -> None:
        self._measures = measures
        self._gauges = (*measures.gauges, *gauges)

    @override
    def collect(self) -> Generator[Metric]:
        """Yield every measure."""
        for counter in self._measures.counters:
            yield _counter(counter)
        for histogram in self._measures.histograms:
            yield _histogram(histogram)
        for gauge in self._gauges:
            yield _gauge(gauge)


def _counter(counter: Counter) -> Metric:
    family = CounterMetricFamily(counter.name, counter.meaning, labels=counter.labels)
    for labels, count in counter.values.items():
        family.add_metric(labels, count)
    return family


def _histogram(histogram: Histogram) -> Metric:
    family = HistogramMetricFamily(histogram.name, histogram.meaning, labels=histogram.labels)
    for labels, durations in histogram.values.items():
        family.add_metric(labels, _cumulated(durations), durations.seconds)
    return family


def _gauge(gauge: Gauge) -> Metric:
    family = GaugeMetricFamily(gauge.name, gauge.meaning, labels=gauge.labels)
    for labels, count in gauge.read().items():
        family.add_metric(labels, count)
    return family


def _cumulated(durations: Durations) -> list[tuple[str, float]]:
    """Return the buckets as Prometheus has them: each with all that took no longer."""
    total, buckets = 0, list[tuple[str, float]]()
    for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), durations.buckets, strict=True):
        total += count
        buckets.append((bound, total))
    return buckets
