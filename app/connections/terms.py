"""How connections are prepared, watched and recovered: what all of a daemon have in common. SPEC §connection."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

from app.connections.judging import Judge
from app.connections.prepare import CatalogLimits
from app.connections.recovery import Backoff
from app.connections.refreshes import Pace
from app.connections.subscriptions import WatchTerms
from app.core.measures import Measures

Slot: TypeAlias = Callable[[], AbstractAsyncContextManager[object]]
"""Gives a place among the daemon's preparations, after queueing for it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How connections are prepared and recovered; the same for all of a daemon."""

    connect_timeout_ms: int
    limits: CatalogLimits
    slot: Slot
    backoff: Backoff
    watch: WatchTerms = field(default_factory=WatchTerms)
    pace: Pace = field(default_factory=Pace)
    judge: Judge | None = None
    """Without one the tools are judged when they are published."""
    measures: Measures = field(default_factory=Measures)
