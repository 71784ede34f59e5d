"""LiveProgress: when a workspace's state shows the progress of its operations. SPEC §agui.

A peer reports as often as it likes, and every report in the state reaches every run. So the first one after a pause is
shown at once, and what follows in the next interval, of whichever operations, is shown together at its end.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Final

INTERVAL_S: Final = 0.5


class LiveProgress:
    """Says of which operations the progress is to be shown now, at most once an interval."""

    def __init__(self, show: Callable[[Collection[str]], None], *, interval_s: float = INTERVAL_S) -> None:
        """Take what shows the progress of these operations, some of which may have ended meanwhile."""
        self._show = show
        self._interval_s = interval_s
        self._reported: dict[str, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def reported(self, operation: str) -> None:
        """Have the progress of this operation shown, now or at the end of the interval."""
        self._reported[operation] = None
        if self._timer is None:
            self._tell()

    def _tell(self) -> None:
        reported, self._reported, self._timer = self._reported, {}, None
        if reported:
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._tell)
            self._show(reported)
