"""Waiting for what happens on the other side of a socket, where no event of ours tells of it."""

from collections.abc import Callable

import anyio


async def eventually(claim: Callable[[], object]) -> None:
    """Return once the claim holds; a test that waits in vain fails."""
    with anyio.fail_after(5):
        while not claim():
            await anyio.sleep(0.001)
