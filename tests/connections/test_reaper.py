"""Nothing is left behind, however the daemon ends. SPEC §connection, §shutdown."""

import os
import signal
import sys
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from app.connections.child_record import ChildRecord
from app.connections.reaper import Reaper
from tests.support.children import DEAF, SLEEP, descriptor_count, descriptors, leaders, run_program, text_of
from tests.support.processes import is_alive, until_gone

pytestmark = [pytest.mark.spec("connection"), pytest.mark.spec("shutdown"), pytest.mark.anyio]

DAEMON = """
import json, sys, anyio
from pathlib import Path
from app.connections.child_record import ChildRecord
from app.connections.reaper import Reaper
async def main():
    reaper = Reaper(ChildRecord(Path(sys.argv[1])))
    for group in sys.argv[2:]:
        await reaper.watch(int(group))
    known = None
    while True:  # a reaper whose pid is there has been told everything
        if reaper.pid not in (None, known):
            known = reaper.pid
            print(known, flush=True)
        await anyio.sleep(0.01)
anyio.run(main)
"""


async def test_it_starts_with_the_first_group_and_ends_with_the_daemon() -> None:
    reaper = Reaper()
    assert reaper.pid is None
    with leaders(SLEEP) as (process,):
        await reaper.watch(process.pid)
        pid = reaper.pid
        assert pid is not None
        assert is_alive(pid)
        assert os.getsid(pid) == pid, "a terminal's signals do not reach it"
        reaper.forget(process.pid)
        reaper.forget(process.pid)
        assert reaper.groups == frozenset()
        await reaper.close()
        await reaper.close()
        assert not is_alive(pid)
        assert process.poll() is None, "a forgotten group is nobody's business"


async def test_it_holds_nothing_of_the_daemon() -> None:
    inheritable = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(inheritable, True)
    reaper = Reaper()
    with leaders(SLEEP) as (process,):
        await reaper.watch(process.pid)
        assert reaper.pid is not None
        assert descriptors(reaper.pid) == ["/dev/null", "/dev/null", "pipe"]
        assert str(await anyio.Path(f"/proc/{reaper.pid}/cwd").readlink()) == "/"
        environment = await anyio.Path(f"/proc/{reaper.pid}/environ").read_bytes()
        assert set(environment.split(b"\0")) <= {b"LC_ALL=C", b""}
        os.close(inheritable)
        await reaper.close()


async def test_what_is_still_watched_when_it_closes_is_ended() -> None:
    reaper = Reaper()
    with leaders(SLEEP) as (process,):
        await reaper.watch(process.pid)
        await reaper.close()
        assert process.wait(5) == -signal.SIGTERM


async def test_a_reaper_that_was_killed_is_replaced_although_nothing_is_to_be_told(tmp_path: Path) -> None:
    with leaders(SLEEP) as (process,):
        daemon = run_program(DAEMON, str(tmp_path / "children"), str(process.pid))
        assert daemon.stdout is not None
        killed = int(await anyio.to_thread.run_sync(daemon.stdout.readline))
        os.kill(killed, signal.SIGKILL)
        await until_gone({killed})
        with anyio.fail_after(20):
            replaced = int(await anyio.to_thread.run_sync(daemon.stdout.readline, abandon_on_cancel=True))
        daemon.kill()
        daemon.communicate()
        assert replaced != killed
        assert process.wait(20) == -signal.SIGTERM
        await until_gone({replaced})


async def test_a_reaper_that_keeps_ending_is_not_started_over_and_over() -> None:
    reaper = Reaper()
    seen: set[int] = set()
    with leaders(SLEEP) as (process,):
        await reaper.watch(process.pid)
        with anyio.move_on_after(1.5):
            while True:
                if reaper.pid is not None:
                    seen.add(reaper.pid)
                    os.kill(reaper.pid, signal.SIGKILL)
                await anyio.sleep(0.01)
        assert 2 <= len(seen) <= 3
        await reaper.close()


async def test_a_reaper_that_was_killed_is_replaced_and_told_everything() -> None:
    reaper = Reaper()
    with leaders(SLEEP, SLEEP) as (first, second):
        await reaper.watch(first.pid)
        killed = reaper.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        await until_gone({killed})
        await reaper.watch(second.pid)
        assert reaper.pid not in {None, killed}
        await reaper.close()
        assert [process.wait(5) for process in (first, second)] == [-signal.SIGTERM, -signal.SIGTERM]


async def test_a_reaper_that_does_not_read_is_replaced() -> None:
    reaper = Reaper()
    with leaders(SLEEP) as (process,):
        await reaper.watch(process.pid)
        stopped = reaper.pid
        assert stopped is not None
        os.kill(stopped, signal.SIGSTOP)
        for _ in range(10_000):
            await reaper.watch(2**22 + 1)
            reaper.forget(2**22 + 1)
        assert reaper.pid not in {None, stopped}
        await reaper.close()
        assert process.wait(5) == -signal.SIGTERM


async def test_a_reaper_that_cannot_be_started_is_an_error_and_watches_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    reaper = Reaper()
    before = descriptor_count()
    with pytest.raises(OSError, match="No such file"):
        await reaper.watch(os.getpid())
    assert (reaper.groups, reaper.pid) == (frozenset(), None)
    assert descriptor_count() == before
    await reaper.close()


async def test_the_record_follows_what_is_watched(tmp_path: Path) -> None:
    path = tmp_path / "children"
    reaper = Reaper(ChildRecord(path))
    with leaders(SLEEP) as (process,):
        await reaper.watch(process.pid)
        assert text_of(path).startswith(f"+ {process.pid} ")
        reaper.forget(process.pid)
        await reaper.close()
    assert text_of(path) == ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_daemon_that_dies_at_once_leaves_no_group(tmp_path: Path, number: signal.Signals) -> None:
    with leaders(SLEEP, DEAF) as groups:
        daemon = run_program(DAEMON, str(tmp_path / "children"), *(str(each.pid) for each in groups))
        assert daemon.stdout is not None
        reaper = int(await anyio.to_thread.run_sync(daemon.stdout.readline))
        daemon.send_signal(number)
        daemon.communicate()
        assert [each.wait(20) for each in groups] == [-signal.SIGTERM, -signal.SIGKILL]
        await until_gone({reaper})


async def test_when_the_reaper_dies_as_well_the_next_start_ends_the_rest(tmp_path: Path) -> None:
    with leaders(SLEEP) as (process,):
        daemon = run_program(DAEMON, str(tmp_path / "children"), str(process.pid))
        assert daemon.stdout is not None
        reaper = int(await anyio.to_thread.run_sync(daemon.stdout.readline))
        os.kill(reaper, signal.SIGKILL)
        daemon.kill()
        daemon.communicate()
        await until_gone({reaper})
        assert process.poll() is None
        assert await ChildRecord(tmp_path / "children").end_survivors() == 1
        assert process.wait(5) == -signal.SIGTERM
