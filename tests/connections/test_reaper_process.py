"""What the reaper's program does, alone. SPEC §connection."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.connections.process_group import start_time
from app.connections.reaper_process import note
from tests.support.children import ROOT, SLEEP, leaders

pytestmark = pytest.mark.spec("connection")

REAPER = "from app.connections.reaper_process import main; main()"


def reaper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", REAPER], stdin=subprocess.PIPE, cwd=ROOT)


def ignored_signals(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("SigIgn")).split()[1], 16)


def test_lines_that_make_no_sense_change_nothing() -> None:
    groups: dict[int, str | None] = {}
    for line in ("+ 20 boot/5", "+ 21", "+ 22 Mon Nov 30", "- 21", "- 99"):
        note(groups, line)
    for line in ("", "+", "+ ", "+ x", "+ -5 a", "+ 0 a", "+ 1 a", "* 20", "- 2x", "+ \u0665\u0666 a"):
        note(groups, line)
    assert groups == {20: "boot/5", 22: "Mon Nov 30"}


def test_the_end_of_the_pipe_ends_what_is_left_and_nothing_else() -> None:
    with leaders(SLEEP, SLEEP, SLEEP) as (left, forgotten, stranger):
        lines = [
            f"+ {left.pid} {start_time(left.pid)}",
            f"+ {forgotten.pid}",
            f"- {forgotten.pid}",
            f"+ {stranger.pid} boot/1",
            f"+ {forgotten.pid}",  # torn: no newline follows
        ]
        process = reaper()
        process.communicate("\n".join(lines).encode(), timeout=20)
        assert (process.returncode, left.wait(5)) == (0, -signal.SIGTERM)
        assert [other.poll() for other in (forgotten, stranger)] == [None, None]


def test_a_terminals_signals_do_not_stop_it() -> None:
    with leaders(SLEEP) as (left,):
        process = reaper()
        assert process.stdin is not None
        process.stdin.write(f"+ {left.pid}\n".encode())
        process.stdin.flush()
        while not ignored_signals(process.pid) & (1 << (signal.SIGQUIT - 1)):
            assert process.poll() is None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        assert left.poll() is None
        process.communicate(timeout=20)
        assert (process.returncode, left.wait(5)) == (0, -signal.SIGTERM)
