"""Hearing at once that a child has ended, the same way on every event loop. SPEC §connection.

A pidfd where the system has one, else a thread. asyncio's own watchers differ between loops, and uvloop's
way of starting processes falls back to a shell and leaves descriptors open in the child, so neither is
used.
"""

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress


class ExitWatch:
    """Calls back in the loop's thread, once, when the process has ended and been reaped; not after ``close``."""

    def __init__(self, process: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._on_exit = on_exit
        self._is_closed = False
        self._descriptor = _pidfd(process.pid)
        if self._descriptor is None:
            threading.Thread(target=self._wait, name=f"wait-{process.pid}", daemon=True).start()
        else:
            self._loop.add_reader(self._descriptor, self._readable)

    def _readable(self) -> None:
        """Reap it: a pidfd is readable when its process has ended."""
        if self._process.poll() is None:
            return
        self._tell()

    def close(self) -> None:
        """Watch no longer. Idempotent; a process that has not ended is left to whoever started it."""
        self._is_closed = True
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _tell(self) -> None:
        if not self._is_closed:
            self.close()
            self._on_exit()

    def _wait(self) -> None:
        """Reap it in a thread of its own; a loop that is closed meanwhile is told nothing."""
        self._process.wait()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._tell)


def _pidfd(pid: int) -> int | None:
    """Return a descriptor of the process, or None where there is none to be had."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
