"""Deadlines: stops the operations of a workspace that run too long, with one timer for all of them. SPEC §calls.

They all may take equally long, so the one that was begun first is due first. One that waits for a person has a timer of
its own; what a stopped one ends in is its driver's to say.
"""

import asyncio
import time
from collections.abc import Mapping

from app.operations.open_operation import OpenOperation


class Deadlines:
    """Cancels what is under way past its deadline."""

    def __init__(self, operations: Mapping[str, OpenOperation]) -> None:
        """Take the open operations, oldest first, as somebody else keeps them."""
        self._operations = operations
        self._timer: asyncio.TimerHandle | None = None

    def heed(self, operation: OpenOperation) -> None:
        """Have the new operation stopped at its deadline, if it is open and under way then."""
        if self._timer is None:
            seconds = operation.deadline - time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(seconds, self._pass)

    def stop(self) -> None:
        """Heed nothing that is open any more; what is begun later is heeded again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _pass(self) -> None:
        self._timer = None
        for operation in self._operations.values():
            if operation.deadline > time.monotonic():
                self.heed(operation)
                return
            if operation.driven is not None:
                operation.driven.cancel()
