"""The journal of running groups. SPEC §connection, §state."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app.connections.child_record import COMPACT_AT, ChildRecord
from app.connections.process_group import start_time

pytestmark = [pytest.mark.spec("connection"), pytest.mark.spec("state"), pytest.mark.anyio]

SLEEP = "import time; print(flush=True); time.sleep(600)"


def sleeper() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process


def end(*processes: subprocess.Popen[bytes]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


async def test_the_next_daemon_ends_exactly_the_groups_that_are_provably_the_recorded_ones(tmp_path: Path) -> None:
    path = tmp_path / "children"
    survivor, ended, reused = sleeper(), sleeper(), sleeper()
    crashed = ChildRecord(path)
    crashed.add(survivor.pid, start_time(survivor.pid) or "")
    crashed.add(ended.pid, start_time(ended.pid) or "")
    crashed.remove(ended.pid)
    crashed.add(reused.pid, "another boot/1")
    crashed.add(2**22 + 1, "boot/1")
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("a") as torn:
        torn.write(f"+ {ended.pid} {start_time(ended.pid)}")

    assert await ChildRecord(path).end_survivors() == 1
    assert survivor.wait(5) == -signal.SIGTERM
    assert [other.poll() for other in (ended, reused)] == [None, None]
    assert not path.exists()
    assert await ChildRecord(path).end_survivors() == 0
    crashed.close()
    end(survivor, ended, reused)


async def test_a_clean_end_leaves_no_file(tmp_path: Path) -> None:
    record = ChildRecord(tmp_path / "children")
    record.add(70_000, "boot/1")
    record.remove(70_000)
    record.remove(70_000)
    record.close()
    assert list(tmp_path.iterdir()) == []


async def test_the_journal_stays_small_and_keeps_who_is_alive(tmp_path: Path) -> None:
    path = tmp_path / "children"
    record = ChildRecord(path)
    record.add(70_000, "boot/1")
    for number in range(3 * COMPACT_AT):
        record.add(80_000 + number, "boot/2")
        record.remove(80_000 + number)
    assert len(path.read_text().splitlines()) <= COMPACT_AT + 1
    assert ChildRecord(path)._read() == {70_000: "boot/1"}
    assert [file.name for file in tmp_path.iterdir()] == ["children"]
    record.close()


async def test_an_unwritable_record_is_logged_once_and_stops_nobody(tmp_path: Path) -> None:
    record = ChildRecord(tmp_path / "missing" / "children")
    with capture_logs() as logs:
        record.add(70_000, "boot/1")
        record.remove(70_000)
    record.close()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("child record not written", "warning")]
