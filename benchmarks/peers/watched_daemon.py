"""The daemon beside a watcher of its event loop; at its end it prints the longest stall in milliseconds.

A stall is the processor time of the loop's thread between two turns of the loop: what other processes take of the
core is not in it.
"""

import os
import sys
import time
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint

from app.configuration import read
from app.serving import serve

WATCH = "watch"
"""The file in the working directory from whose appearance on turns are watched: starting and attaching are not."""


async def _main() -> None:
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while not Path(WATCH).exists():
            await anyio.sleep(0.05)
        before = time.thread_time()
        while True:
            await checkpoint()
            now = time.thread_time()
            longest, before = max(longest, now - before), now

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        await serve(read(os.environ, Path.cwd()))
        group.cancel_scope.cancel()
    sys.stdout.write(f"longest stall {longest * 1000:.2f} ms\n")


if __name__ == "__main__":
    anyio.run(_main, backend_options={"use_uvloop": True})
