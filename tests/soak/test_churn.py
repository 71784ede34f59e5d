"""Nothing grows with the names that were ever used: of workspaces, servers, hosts, origins, sign-ins. SPEC §limits."""

import logging
import os
from collections import Counter
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path

import pytest

from app.workspaces import workspace
from tests.soak.churn import churn, held
from tests.soak.memory import resident_mib

pytestmark = [pytest.mark.spec("limits"), pytest.mark.spec("hydration")]

BOUNDED = {
    "yarl.URL",
    "urllib.parse.SplitResult",
    "re.Pattern",
    "weakref.ReferenceType",
    "asyncio.events.TimerHandle",
    "asyncio.events.Handle",
    "_contextvars.Context",
}
"""What libraries keep some hundred of: caches, the cursors of a database connection, timers that were cancelled."""
WARM, MEASURED, ROUNDS = 9, 5, 3
MANY = int(os.environ.get("SOAK_CYCLES", "50"))
"""Cycles of a long round; each uses nine names."""
RESIDENT_MAX = 4.0
"""MiB that two such rounds may leave in the allocator."""


@pytest.fixture(autouse=True)
def bounded(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Have what is bounded be full at once, and keep no log: each line that pytest captures is memory of ours."""
    monkeypatch.setattr(workspace, "NAMES_KEPT", 4)
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


def grown(rounds: list[Counter[str]], cycles: int) -> dict[str, list[int]]:
    """Return of which types there were more after every round, by as many as there were cycles, or more."""
    each = {
        name: [after[name] - before[name] for before, after in pairwise(rounds)]
        for name in rounds[-1]
        if name not in BOUNDED
    }
    return {name: more for name, more in each.items() if min(more) >= cycles}


@pytest.mark.timeout(120)
async def test_what_is_over_leaves_no_object_behind_whatever_its_name(tmp_path: Path) -> None:
    rounds: list[Counter[str]] = []
    async with churn(tmp_path) as house:
        await house.cycles(range(WARM))
        for number in range(ROUNDS):
            rounds.append(held())
            first = WARM + number * MEASURED
            await house.cycles(range(first, first + MEASURED))
        rounds.append(held())
    assert grown(rounds, MEASURED) == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_many_hundreds_of_names_leave_the_resident_set_as_it_was(tmp_path: Path) -> None:
    rounds: list[Counter[str]] = []
    resident: list[float] = []
    async with churn(tmp_path) as house:
        for first in range(0, 4 * MANY, MANY):
            await house.cycles(range(first, first + MANY))
            rounds.append(held())
            resident.append(resident_mib(os.getpid()))
    assert grown(rounds[1:], MANY) == {}
    # Until the second round ends the allocator takes what it needs.
    assert resident[-1] - resident[1] <= RESIDENT_MAX, resident


def test_what_grows_in_every_round_is_told() -> None:
    rounds = [
        Counter({"a": 1, "b": 1, "yarl.URL": 1}),
        Counter(a=9, b=90),
        Counter({"a": 17, "b": 91, "yarl.URL": 9}),
    ]
    assert grown(rounds, 8) == {"a": [8, 8]}
