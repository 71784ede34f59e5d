"""What the reaper's program does, alone. SPEC §connection."""

import signal
import subprocess
import sys

import pytest

from app.connections.process_group import start_time
from app.connections.reaper_process import note

pytestmark = pytest.mark.spec("connection")

SLEEP = "import time; print(flush=True); time.sleep(600)"
REAPER = "from app.connections.reaper_process import main; main()"


def sleeper() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process


def reaper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", REAPER], stdin=subprocess.PIPE, start_new_session=True)


def test_lines_that_make_no_sense_change_nothing() -> None:
    groups: dict[int, str | None] = {}
    for line in ("+ 20 boot/5", "+ 21", "+ 22 Mon Nov 30", "- 21", "- 99"):
        note(groups, line)
    for line in ("", "+", "+ ", "+ x", "+ -5 a", "+ 0 a", "+ 1 a", "* 20", "- 2x", "+ \u0665\u0666 a"):
        note(groups, line)
    assert groups == {20: "boot/5", 22: "Mon Nov 30"}


def test_the_end_of_the_pipe_ends_what_is_left_and_nothing_else() -> None:
    left, forgotten, stranger = sleeper(), sleeper(), sleeper()
    process = reaper()
    lines = f"+ {left.pid} {start_time(left.pid)}\n+ {forgotten.pid}\n- {forgotten.pid}\n+ {stranger.pid} boot/1\n+ 7"
    process.communicate(lines.encode(), timeout=20)
    assert process.returncode == 0
    assert left.wait(5) == -signal.SIGTERM
    assert [other.poll() for other in (forgotten, stranger)] == [None, None]
    for other in (left, forgotten, stranger):
        other.kill()
        other.communicate()


def test_a_terminals_signals_do_not_stop_it() -> None:
    process, left = reaper(), sleeper()
    assert process.stdin is not None
    process.stdin.write(f"+ {left.pid}\n".encode())
    process.stdin.flush()
    # It ignores signals from the moment it reads; /proc says when that is.
    mask = 0
    while not mask & (1 << (signal.SIGTERM - 1)):
        with open(f"/proc/{process.pid}/status") as status:
            mask = int(next(line for line in status if line.startswith("SigIgn")).split()[1], 16)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process.send_signal(number)
    assert left.poll() is None
    process.communicate(timeout=20)
    assert (process.returncode, left.wait(5)) == (0, -signal.SIGTERM)
    left.communicate()
