"""Lets a test set the wall clock of a process: by so many seconds as the file WALL_CLOCK names says.

Every clock of Python that tells the date is shifted; those that nobody can set, which libraries of C read too, are not.
"""

import datetime as dt
import os
import time
from pathlib import Path
from typing import Self

from typing_extensions import override

_file = Path(os.environ["WALL_CLOCK"])
_time, _time_ns, _datetime = time.time, time.time_ns, dt.datetime


def _shift() -> int:
    return int(_file.read_text())


class _Shifted(_datetime):
    @classmethod
    @override
    def now(cls, tz: dt.tzinfo | None = None) -> Self:
        return cls.fromtimestamp(time.time(), tz)

    @classmethod
    @override
    def utcnow(cls) -> Self:
        return cls.now(dt.UTC).replace(tzinfo=None)

    @classmethod
    @override
    def today(cls) -> Self:
        return cls.now()


time.time = lambda: _time() + _shift()
time.time_ns = lambda: _time_ns() + _shift() * 10**9
dt.datetime = _Shifted
