"""Processes pinned to a core, and what a whole tree of them costs. Linux; elsewhere nothing is pinned.

CPU time is that of the kernel's own clock of each process, to the nanosecond, threads that have ended included.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

GATEWAY_CORE, LOAD_CORE = 0, 1
ROOT = Path(__file__).resolve().parent.parent
IS_PINNED = sys.platform == "linux" and os.sched_getaffinity(0) >= {GATEWAY_CORE, LOAD_CORE}
"""Whether there are two cores and a system that lets us choose between them."""
_PIN = "import os,sys; os.sched_setaffinity(0, {int(sys.argv[1])}); os.execvp(sys.argv[2], sys.argv[2:])"
STOP_SECONDS = 15


def pin_here() -> None:
    """Run this process, the load, on the core of the backend."""
    if IS_PINNED:
        os.sched_setaffinity(0, {LOAD_CORE})


def pinned(core: int, *command: str) -> list[str]:
    """Return the command that runs this one, and all that it starts, on the core."""
    return [sys.executable, "-c", _PIN, str(core), *command] if IS_PINNED else list(command)


class Process:
    """One started process and everything it starts; a context manager that leaves none of it."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        core: int,
        talks: bool = False,
        environment: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        log: Path | None = None,
    ) -> None:
        """Start it on the core; ``log`` takes what it writes, but for the standard output of one that talks to us."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLURNK_")}
        self.log = log
        with (log or Path(os.devnull)).open("ab") as errors:
            self.popen = subprocess.Popen(
                pinned(core, *command),
                cwd=cwd,
                env={**inherited, "PYTHONPATH": str(ROOT), **(environment or {})},
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else errors,
                stderr=errors,
                start_new_session=True,
            )

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def line(self) -> str:
        """Return the next line of its standard output; empty once it has ended."""
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().decode()

    def say(self, line: str) -> None:
        """Write one line to its standard input."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(line.encode() + b"\n")
        self.popen.stdin.flush()

    def cpu(self) -> float:
        """Return the CPU seconds of the tree so far."""
        return sum(_cpu_of(pid) for pid in tree(self.popen.pid))

    def memory(self) -> int:
        """Return the bytes of the process in memory, without its children."""
        text = Path(f"/proc/{self.popen.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS:"))

    def stop(self) -> None:
        """End it, kindly first; nothing of its session is left."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                pipe.close()


def tree(pid: int) -> list[int]:
    """Return the process and all its descendants that live."""
    found = [pid]
    for each in found:
        for children in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except OSError:
                continue
    return found


def _cpu_of(pid: int) -> float:
    # clock_getcpuclockid(3), which the standard library does not have: CPUCLOCK_SCHED of the whole process.
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0
