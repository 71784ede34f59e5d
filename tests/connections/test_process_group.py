"""Groups by number and identity. SPEC §connection."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app.connections.process_group import (
    _ps_start_time,
    end_groups,
    has_members,
    is_left_behind,
    is_ours,
    signal_group,
    start_time,
)
from tests.support.processes import is_alive

pytestmark = pytest.mark.spec("connection")

SLEEP = "import time; print(flush=True); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"
ORPHAN = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}])"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        signal_group(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def leader(started: list[subprocess.Popen[bytes]], program: str) -> int:
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    started.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process.pid


def test_a_start_time_identifies_a_process() -> None:
    own = start_time(os.getpid())
    assert own
    assert own == start_time(os.getpid()) != start_time(1)
    assert start_time(2**22 + 1) is None


def test_ps_tells_a_start_time_where_proc_does_not() -> None:
    assert _ps_start_time(os.getpid()) == _ps_start_time(os.getpid()) is not None
    assert _ps_start_time(2**22 + 1) is None


def test_a_name_with_parentheses_does_not_confuse_the_fields(started: list[subprocess.Popen[bytes]]) -> None:
    before = leader(started, f"open('/proc/self/comm', 'w').write('a) R 1 1 1'); {SLEEP}")
    number = int((start_time(before) or "").rpartition("/")[2])
    assert abs(number - int((start_time(leader(started, SLEEP)) or "").rpartition("/")[2])) < 100_000


def test_ending_is_polite_first_and_then_certain(started: list[subprocess.Popen[bytes]]) -> None:
    polite, deaf, spared = leader(started, SLEEP), leader(started, DEAF), leader(started, SLEEP)
    ended = end_groups(
        {polite: start_time(polite), deaf: None}, trusts_a_missing_leader=True, grace_s=0.1
    )
    assert ended == [polite, deaf]
    assert [process.wait(5) for process in started[:2]] == [-signal.SIGTERM, -signal.SIGKILL]
    assert is_alive(spared)


def test_a_number_that_somebody_else_has_now_is_left_alone(started: list[subprocess.Popen[bytes]]) -> None:
    stranger = leader(started, SLEEP)
    assert end_groups({stranger: "another boot/1"}, trusts_a_missing_leader=True, grace_s=1) == []
    assert is_alive(stranger)
    assert is_left_behind(stranger) is False, "its leader lives, so it is not what our leader left behind"


def test_members_that_outlive_their_leader_are_ours_only_for_who_saw_the_leader(
    started: list[subprocess.Popen[bytes]],
) -> None:
    group = leader(started, ORPHAN)
    started[0].wait(10)
    assert (has_members(group), is_left_behind(group)) == (True, True)
    assert is_ours(group, "boot/1", trusts_a_missing_leader=False) is False
    assert end_groups({group: "boot/1"}, trusts_a_missing_leader=False, grace_s=0) == []
    assert end_groups({group: "boot/1"}, trusts_a_missing_leader=True, grace_s=5) == [group]
    assert signal_group(group, 0) is False


def test_a_group_that_is_gone_is_signalled_in_vain(started: list[subprocess.Popen[bytes]]) -> None:
    group = leader(started, SLEEP)
    started[0].kill()
    started[0].wait()
    assert (has_members(group), signal_group(group, signal.SIGTERM)) == (False, False)
