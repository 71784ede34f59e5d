"""Where log lines go: masked, gathered for a moment, then written together, in their order. SPEC §observe.

Masked at once: a secret may be forgotten while its line waits. What is worse than ``info`` is written at once, with all
that was gathered before it; so is what comes from another thread, or while no event loop runs. Whoever ends the process
calls ``flush`` first.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Final, TextIO

from typing_extensions import override

GATHER_S: Final = 0.02
"""How long a line waits for others."""
GATHER_MAX: Final = 32
"""Lines that wait at most."""


class LogLines:
    """The one way to the log. Safe to use from every thread."""

    def __init__(self, file: TextIO, mask: Callable[[str], str]) -> None:
        self._file = file
        self._mask = mask
        self._gathered: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop that the last line came from, and its thread."""
        self._thread = 0
        self._lock = threading.RLock()

    def info(self, line: str) -> None:
        """Write the line soon."""
        loop = self._loop
        # Python 3.11 asks the system which process we are whenever it looks for the running loop.
        if loop is None or self._thread != threading.get_ident() or not loop.is_running():
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                self.error(line)
                return
        masked = self._mask(line)
        with self._lock:
            self._gathered.append(masked)
            if len(self._gathered) >= GATHER_MAX:
                self.flush()
            elif self._timer is None or self._loop is not loop:
                self._timer = loop.call_later(GATHER_S, self.flush)
                self._loop, self._thread = loop, threading.get_ident()

    debug = info

    def error(self, line: str) -> None:
        """Write the line now, behind those that were gathered."""
        masked = self._mask(line)
        with self._lock:
            self._gathered.append(masked)
            self.flush()

    warning = error

    def flush(self) -> None:
        """Have everything written on return."""
        with self._lock:
            lines, self._gathered, self._timer = self._gathered, [], None
            if lines:
                self._file.write("\n".join(lines) + "\n")
                self._file.flush()


class LogLinesHandler(logging.Handler):
    """Brings what libraries log the same way."""

    def __init__(self, lines: LogLines) -> None:
        super().__init__()
        self._lines = lines

    @override
    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.error(self.format(record))
        except Exception:  # noqa: BLE001 as the standard library's handlers do
            self.handleError(record)

    @override
    def flush(self) -> None:
        self._lines.flush()
