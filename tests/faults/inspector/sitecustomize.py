"""Lets a test count the tasks of a daemon: SIGUSR2 writes their number to the file TASK_COUNT names."""

import asyncio
import gc
import os
import signal
from pathlib import Path
from types import FrameType


def _count(_number: int, _frame: FrameType | None) -> None:
    tasks = [each for each in gc.get_objects() if isinstance(each, asyncio.Task) and not each.done()]
    counted = Path(os.environ["TASK_COUNT"])
    partial = counted.with_suffix(".partial")
    partial.write_text(str(len(tasks)))
    partial.rename(counted)


if "TASK_COUNT" in os.environ:
    signal.signal(signal.SIGUSR2, _count)
