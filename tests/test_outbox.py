"""outbox.py: who writes when, and in which order."""

import asyncio
from collections.abc import Sequence

import pytest
from anyio.lowlevel import checkpoint

from app.outbox import Outbox


@pytest.mark.spec("connection")
async def test_what_is_added_in_one_turn_is_written_together_and_in_order() -> None:
    written: list[list[int]] = []

    def write(numbers: Sequence[int]) -> None:
        written.append(list(numbers))
        if numbers[0] == 1:
            outbox.add(4)  # Whoever is added while others write is for the turn after.

    outbox = Outbox[int](asyncio.get_running_loop(), write)
    for number in (1, 2, 3):
        outbox.add(number)
    assert written == []
    await checkpoint()
    assert written == [[1, 2, 3]]
    await checkpoint()
    await checkpoint()
    assert written == [[1, 2, 3], [4]]
