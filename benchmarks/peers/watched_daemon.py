"""The daemon on an event loop that times its callbacks; at its end it prints the longest in milliseconds.

A stall is what one callback, which is mostly one step of a task, keeps the loop from all the others. It is the
processor time of the loop's thread: what other processes take of the core is not in it.
"""

import os
import sys
import time
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any

import anyio
import uvloop
from typing_extensions import override

from app.configuration import read
from app.serving import serve

WATCH = "watch"
"""The file in the working directory from whose appearance on is watched: starting and attaching are not."""


class TimedLoop(uvloop.Loop):
    """A loop that knows its longest callback."""

    is_watching = False
    longest = 0.0

    @override
    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Any:
        return super().call_soon(self._timed, callback, *args, context=context)

    def _timed(self, callback: Callable[..., object], *args: Any) -> None:
        began = time.thread_time()
        callback(*args)
        if self.is_watching:
            self.longest = max(self.longest, time.thread_time() - began)


async def _main(loop: TimedLoop) -> None:
    async def watch() -> None:
        while not Path(WATCH).exists():
            await anyio.sleep(0.05)
        loop.is_watching = True

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await serve(read(os.environ, Path.cwd()))
        group.cancel_scope.cancel()
    sys.stdout.write(f"longest stall {loop.longest * 1000:.2f} ms\n")


if __name__ == "__main__":
    timed = TimedLoop()
    anyio.run(_main, timed, backend_options={"loop_factory": lambda: timed})
