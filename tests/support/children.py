"""Processes for the tests of process groups, and what this process holds. SPEC §connection. Linux only."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SLEEP = "import time; print(flush=True); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
ORPHAN = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}])"
"""Ends at once, and leaves a member of its group behind."""

ROOT = Path(__file__).parents[2]
SCRIPTED_STDIO = Path(__file__).parent / "scripted_stdio.py"


@contextmanager
def leaders(*programs: str) -> Generator[list[subprocess.Popen[bytes]]]:
    """Run each program as the leader of a group, once it has printed a line; they are gone afterwards."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for program in programs:
            command = [sys.executable, "-c", program]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True))
            stdout = processes[-1].stdout
            assert stdout is not None
            assert stdout.readline() == b"\n"
        yield processes
    finally:
        for process in processes:
            process.kill()
            if process.stdout is not None:
                process.stdout.close()
            process.wait()


def run_program(program: str, *args: str) -> subprocess.Popen[bytes]:
    """Return a running program that imports the daemon's code; the caller ends it."""
    return subprocess.Popen([sys.executable, "-c", program, *args], stdout=subprocess.PIPE, cwd=ROOT)


def descriptor_count() -> int:
    """Return how many descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def descriptors(pid: int) -> list[str]:
    """Return what the descriptors of a process are: files by path, the rest by kind; sorted."""
    return sorted(str(entry.readlink()).split(":")[0] for entry in Path(f"/proc/{pid}/fd").iterdir())


def is_reaped(pid: int) -> bool:
    """Whether nothing is left of the process, not even a zombie."""
    return not Path(f"/proc/{pid}").exists()


def text_of(path: Path) -> str:
    """Return what a file holds; nothing where it does not exist."""
    return path.read_text() if path.exists() else ""


def names_in(directory: Path) -> list[str]:
    """Return the names in a directory, sorted."""
    return sorted(file.name for file in directory.iterdir())
