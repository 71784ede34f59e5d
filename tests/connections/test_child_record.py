"""The journal of running groups. SPEC §connection, §state."""

import signal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app.connections.child_record import COMPACT_AT, ChildRecord
from app.connections.process_group import start_time
from tests.support.children import SLEEP, leaders, names_in, text_of

pytestmark = [pytest.mark.spec("connection"), pytest.mark.spec("state"), pytest.mark.anyio]


def crashed(path: Path, survivor: int, ended: int, reused: int) -> None:
    """Leave the journal of a daemon that died while it wrote a line."""
    record = ChildRecord(path)
    record.add(survivor, start_time(survivor) or "")
    record.add(ended, start_time(ended) or "")
    record.remove(ended)
    record.add(reused, "another boot/1")
    record.add(2**22 + 1, "boot/1")
    record.close()
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("a") as torn:
        torn.write(f"+ {ended} {start_time(ended)}")


async def test_the_next_daemon_ends_only_what_is_provably_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "children"
    with leaders(SLEEP, SLEEP, SLEEP) as (survivor, ended, reused):
        crashed(path, survivor.pid, ended.pid, reused.pid)
        assert await ChildRecord(path).end_survivors() == 1
        assert survivor.wait(5) == -signal.SIGTERM
        assert [other.poll() for other in (ended, reused)] == [None, None]
    assert names_in(tmp_path) == []
    assert await ChildRecord(path).end_survivors() == 0


async def test_a_clean_end_leaves_no_file(tmp_path: Path) -> None:
    record = ChildRecord(tmp_path / "children")
    record.add(70_000, "boot/1")
    record.remove(70_000)
    record.remove(70_000)
    record.close()
    assert names_in(tmp_path) == []


async def test_the_journal_stays_small_and_keeps_who_is_alive(tmp_path: Path) -> None:
    path = tmp_path / "children"
    record = ChildRecord(path)
    record.add(70_000, "boot/1")
    for number in range(3 * COMPACT_AT):
        record.add(80_000 + number, "boot/2")
        record.remove(80_000 + number)
    assert len(text_of(path).splitlines()) <= COMPACT_AT + 1
    assert ChildRecord(path)._read() == {70_000: "boot/1"}
    assert names_in(tmp_path) == ["children"]
    record.close()


async def test_an_unwritable_record_is_logged_once_and_stops_nobody(tmp_path: Path) -> None:
    record = ChildRecord(tmp_path / "missing" / "children")
    with capture_logs() as logs:
        record.add(70_000, "boot/1")
        record.remove(70_000)
    record.close()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("child record not written", "warning")
    ]
