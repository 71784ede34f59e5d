"""Nothing is left behind, however the daemon ends. SPEC §connection, §shutdown."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from app.connections.child_record import ChildRecord
from app.connections.reaper import Reaper
from tests.support.processes import is_alive, until_gone

pytestmark = [pytest.mark.spec("connection"), pytest.mark.spec("shutdown"), pytest.mark.anyio]

ROOT = Path(__file__).parents[2]
SLEEP = "import time; print(flush=True); time.sleep(600)"
DEAF = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEP}"


def sleeper(program: str = SLEEP) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"
    return process


def end(*processes: subprocess.Popen[bytes]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


def descriptors(pid: int) -> list[str]:
    return sorted(str(entry.readlink()).split(":")[0] for entry in Path(f"/proc/{pid}/fd").iterdir())


async def test_it_starts_with_the_first_group_and_ends_with_the_daemon() -> None:
    reaper = Reaper()
    assert reaper.pid is None
    process = sleeper()
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
    end(process)


async def test_it_holds_nothing_of_the_daemon() -> None:
    inheritable = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(inheritable, True)
    reaper = Reaper()
    process = sleeper()
    await reaper.watch(process.pid)
    assert reaper.pid is not None
    assert descriptors(reaper.pid) == ["/dev/null", "/dev/null", "pipe"]
    assert Path(f"/proc/{reaper.pid}/cwd").readlink() == Path("/")
    assert set(Path(f"/proc/{reaper.pid}/environ").read_bytes().split(b"\0")) <= {b"LC_ALL=C", b""}
    os.close(inheritable)
    await reaper.close()
    end(process)


async def test_what_is_still_watched_when_it_closes_is_ended() -> None:
    reaper = Reaper()
    process = sleeper()
    await reaper.watch(process.pid)
    await reaper.close()
    assert process.wait(5) == -signal.SIGTERM
    end(process)


async def test_a_reaper_that_was_killed_is_replaced_and_told_everything() -> None:
    reaper = Reaper()
    first, second = sleeper(), sleeper()
    await reaper.watch(first.pid)
    killed = reaper.pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    await until_gone({killed})
    await reaper.watch(second.pid)
    assert reaper.pid not in {None, killed}
    await reaper.close()
    assert [process.wait(5) for process in (first, second)] == [-signal.SIGTERM, -signal.SIGTERM]
    end(first, second)


async def test_a_reaper_that_cannot_be_started_is_an_error_and_watches_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    reaper = Reaper()
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match="No such file"):
        await reaper.watch(os.getpid())
    assert (reaper.groups, reaper.pid) == (frozenset(), None)
    assert len(os.listdir("/proc/self/fd")) == before
    await reaper.close()


async def test_the_record_follows_what_is_watched(tmp_path: Path) -> None:
    path = tmp_path / "children"
    reaper = Reaper(ChildRecord(path))
    process = sleeper()
    await reaper.watch(process.pid)
    assert path.read_text().startswith(f"+ {process.pid} ")
    reaper.forget(process.pid)
    await reaper.close()
    assert not path.exists()
    end(process)


DAEMON = """
import json, sys, anyio
from pathlib import Path
from app.connections.child_record import ChildRecord
from app.connections.reaper import Reaper
async def main():
    reaper = Reaper(ChildRecord(Path(sys.argv[1])))
    for group in sys.argv[2:]:
        await reaper.watch(int(group))
    print(reaper.pid, flush=True)
    await anyio.sleep_forever()
anyio.run(main)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_daemon_that_dies_at_once_leaves_no_group(tmp_path: Path, number: signal.Signals) -> None:
    groups = [sleeper(), sleeper(DEAF)]
    command = [sys.executable, "-c", DAEMON, str(tmp_path / "children"), *(str(each.pid) for each in groups)]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert daemon.stdout is not None
    reaper = int(await anyio.to_thread.run_sync(daemon.stdout.readline))
    daemon.send_signal(number)
    daemon.communicate()
    assert [each.wait(20) for each in groups] == [-signal.SIGTERM, -signal.SIGKILL]
    await until_gone({reaper})
    end(*groups)


async def test_when_the_reaper_dies_as_well_the_record_ends_the_rest_at_the_next_start(tmp_path: Path) -> None:
    process = sleeper()
    command = [sys.executable, "-c", DAEMON, str(tmp_path / "children"), str(process.pid)]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert daemon.stdout is not None
    reaper = int(await anyio.to_thread.run_sync(daemon.stdout.readline))
    os.kill(reaper, signal.SIGKILL)
    daemon.kill()
    daemon.communicate()
    await until_gone({reaper})
    assert process.poll() is None
    assert await ChildRecord(tmp_path / "children").end_survivors() == 1
    assert process.wait(5) == -signal.SIGTERM
    end(process)
