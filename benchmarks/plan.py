"""What one run measures: the quick one, the full one, and for tests a tiny one."""

from dataclasses import dataclass

from benchmarks.blocks import Effort
from benchmarks.gateways import FULL as FULL_GATEWAYS
from benchmarks.gateways import QUICK as QUICK_GATEWAYS
from benchmarks.gateways import STDIO, Gateway
from benchmarks.lifecycle import Extent


@dataclass(frozen=True)
class Plan:
    """Every scenario's size."""

    effort: Effort
    extent: Extent
    in_flight: tuple[int, ...]
    gateways: tuple[Gateway, ...] = ()
    stdio_gateways: tuple[Gateway, ...] = ()
    sizes: tuple[int, ...] = ()
    """Bytes of the results that are called for, as JSON and as an event stream."""
    in_flight_over_tls: tuple[int, ...] = ()
    minutes: int = 0
    """At full load."""
    minute_s: float = 60


QUICK = Plan(Effort(), Extent(), in_flight=(1, 32), gateways=QUICK_GATEWAYS, stdio_gateways=STDIO)
FULL = Plan(
    Effort(rounds=9, block_s=1.0),
    Extent(starts=(1, 20, 200, 1000), idle_s=60),
    in_flight=(1, 8, 32, 256),
    gateways=FULL_GATEWAYS,
    stdio_gateways=STDIO,
    sizes=(100, 10_000, 1_000_000),
    in_flight_over_tls=(1, 32),
    minutes=10,
)
