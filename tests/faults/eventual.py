"""Waiting for what has to become so, and the shape of the judges that may wait. SPEC §connection."""

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias

import anyio

from tests.faults.world import Json, World

Faults: TypeAlias = AsyncIterator[str]
Trace: TypeAlias = Callable[[World, Json], Faults]
SETTLING_SECONDS = 12
"""The close ladder and some: what has to become so has this time."""


async def becomes(claim: Callable[[], object]) -> bool:
    """Return whether the claim comes to hold."""
    with anyio.move_on_after(SETTLING_SECONDS):
        while not claim():
            await anyio.sleep(0.02)
    return bool(claim())


def many(value: Any) -> list[Any]:
    """Return a list of what may be one alone."""
    return value if isinstance(value, list) else [value]
