"""Starting a child, hearing of its end and ending it. SPEC §connection, §shutdown. S1, S2, S5, X2, X3."""

import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from typing_extensions import override

from app.connections.child_environment import Program
from app.connections.child_process import ChildProcess, Ending, Patience
from app.connections.reaper import Reaper
from tests.support.children import SCRIPTED_STDIO, descriptor_count, is_reaped, text_of
from tests.support.processes import children, is_alive, until_gone

pytestmark = [pytest.mark.spec("connection"), pytest.mark.spec("shutdown"), pytest.mark.anyio]

FULL = Patience()
QUICK = Patience(eof=0.1, term=0.1, group=0.1, silence=0.1, output=0.1)


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def reaper() -> AsyncIterator[Reaper]:
    reaper = Reaper()
    yield reaper
    assert reaper.groups == frozenset()
    await reaper.close()


class Started:
    """A child, and what it made known."""

    def __init__(self) -> None:
        self.stdout = b""
        self.stderr = b""
        self.endings: list[Ending] = []
        self.has_ended = anyio.Event()
        self.heard = anyio.Event()
        self.child: ChildProcess

    def _on_stdout(self, chunk: bytes) -> None:
        self.stdout += chunk
        self.heard.set()

    def _on_stderr(self, chunk: bytes) -> None:
        self.stderr += chunk

    def _on_end(self, ending: Ending) -> None:
        self.endings.append(ending)
        self.has_ended.set()

    async def start(self, reaper: Reaper, *args: str, patience: Patience = FULL) -> "Started":
        self.child = await ChildProcess.start(
            Program(sys.executable, args, None, {"A": "1"}),
            on_stdout=self._on_stdout,
            on_stderr=self._on_stderr,
            on_end=self._on_end,
            reaper=reaper,
            patience=patience,
        )
        return self


async def start(reaper: Reaper, script: dict[str, Any], patience: Patience = FULL) -> Started:
    started = await Started().start(
        reaper, str(SCRIPTED_STDIO), orjson.dumps(script).decode(), patience=patience
    )
    if "ready" in str(script):
        with anyio.fail_after(20):
            await started.heard.wait()
    return started


READY = {"raw": "ready\n"}


async def test_a_child_leads_a_session_and_gets_three_pipes_and_nothing_else(reaper: Reaper) -> None:
    inheritable = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(inheritable, True)
    program = """if True:
        import os, json
        from pathlib import Path
        fds = [file for file in Path("/proc/self/fd").iterdir() if file.exists()]
        env = {name: value for name, value in os.environ.items() if name != "LC_CTYPE"}
        leads = os.getsid(0) == os.getpid() == os.getpgid(0)
        print(json.dumps([leads, env, sorted((file.name, str(file.readlink())[:4]) for file in fds)]))
    """
    started = await Started().start(reaper, "-c", program)
    await started.has_ended.wait()
    assert orjson.loads(started.stdout) == [True, {"A": "1"}, [["0", "pipe"], ["1", "pipe"], ["2", "pipe"]]]
    assert started.endings == [Ending("the process ended with status 0", exit_status=0)]
    assert await started.child.close() is None
    os.close(inheritable)


async def test_a_child_whose_output_takes_long_to_take_in_is_read_in_small_turns(reaper: Reaper) -> None:
    class Slow(Started):
        def __init__(self) -> None:
            super().__init__()
            self.sizes: list[int] = []

        @override
        def _on_stdout(self, chunk: bytes) -> None:
            self.sizes.append(len(chunk))
            if len(self.stdout) >= 2**20:
                time.sleep(0.02)  # work, not waiting
            super()._on_stdout(chunk)

    slow = Slow()
    await slow.start(reaper, "-c", "import os\nfor _ in range(40): os.write(1, bytes(32768))")
    await slow.has_ended.wait()
    assert len(slow.stdout) == 40 * 32768
    assert max(slow.sizes) > 4096, "a child that is taken in fast is read in large pieces"
    assert slow.sizes.count(4096) > 10
    assert await slow.child.close() is None


async def test_a_child_that_ends_on_the_end_of_its_input_is_asked_no_more_than_that(
    reaper: Reaper, tmp_path: Path
) -> None:
    started = await start(reaper, {"start": [READY], "log": str(tmp_path / "log")})
    assert await started.child.close() is None
    assert text_of(tmp_path / "log") == "EOF\n"
    assert started.endings == [], "what was closed did not end by itself"
    assert not is_alive(started.child.pid)
    assert is_reaped(started.child.pid), "no zombie"


@pytest.mark.parametrize("deaf", [["EOF"], ["EOF", "TERM"]])
async def test_the_ladder_goes_as_far_as_it_must(reaper: Reaper, deaf: list[str]) -> None:
    started = await start(reaper, {"start": [READY], "deaf": deaf}, QUICK)
    assert await started.child.close() is None
    assert started.child._process.returncode == (-signal.SIGKILL if "TERM" in deaf else -signal.SIGTERM)
    assert is_reaped(started.child.pid)


@pytest.mark.parametrize("kind", ["sleeper", "stubborn"])
@pytest.mark.parametrize("ends", ["politely", "by SIGTERM", "by itself"])
async def test_no_grandchild_of_the_group_outlives_the_close(
    reaper: Reaper, tmp_path: Path, kind: str, ends: str
) -> None:
    file = tmp_path / "pid"
    script: dict[str, Any] = {"start": [{"spawn": kind, "pid_file": str(file)}, READY]}
    if ends == "by SIGTERM":
        script["deaf"] = ["EOF"]
    if ends == "by itself":
        script["start"].append({"exit": 0})
    started = await start(reaper, script, QUICK)
    grandchild = int(text_of(file))
    if ends == "by itself":
        await started.has_ended.wait()
        assert started.endings == [Ending("the process ended with status 0", exit_status=0)]
    assert await started.child.close() is None
    await until_gone({grandchild, started.child.pid})


async def test_a_grandchild_that_left_the_session_cannot_hold_the_close(
    reaper: Reaper, tmp_path: Path
) -> None:
    file = tmp_path / "pid"
    before = descriptor_count()
    spawn = {"spawn": "sleeper", "pid_file": str(file), "escapes": True}
    started = await start(reaper, {"start": [spawn, READY]}, QUICK)
    with anyio.fail_after(20):
        assert await started.child.close() is None
    assert descriptor_count() == before + 2, "only the reaper's pipe and the watch of its end are left"
    os.kill(int(text_of(file)), signal.SIGKILL)


@pytest.mark.parametrize(
    "step, ending",
    [
        ({"exit": 3}, Ending("the process ended with status 3", exit_status=3)),
        ({"kill": "SEGV"}, Ending("the process was ended by SIGSEGV", signal="SIGSEGV")),
        ({"close": "stdout"}, Ending("the process closed its standard output")),
    ],
)
async def test_an_end_by_itself_is_told_once_with_its_facts_after_the_last_output(
    reaper: Reaper, step: dict[str, Any], ending: Ending
) -> None:
    script = {"start": [{"raw": "last words"}, {"err": "cause"}, step, {"sleep": 600}]}
    started = await start(reaper, script, QUICK)
    with anyio.fail_after(20):
        await started.has_ended.wait()
    assert (started.stdout, started.stderr) == (b"last words", b"cause")
    if started.child._process.returncode is not None:
        assert reaper.groups == frozenset(), "its number is free for strangers from now on"
    assert await started.child.close() is None
    assert started.endings == [ending]


async def test_a_child_that_closes_its_input_ends_when_it_is_written_to(reaper: Reaper) -> None:
    started = await start(reaper, {"start": [{"close": "stdin"}, READY, {"sleep": 600}]}, QUICK)
    assert started.child.stdin.write(b"x\n").has_begun is False
    with anyio.fail_after(20):
        await started.has_ended.wait()
    assert started.endings == [Ending("the process closed its standard input")]
    assert await started.child.close() is None


async def test_a_child_nobody_can_talk_to_is_sent_off_before_it_is_closed(reaper: Reaper) -> None:
    started = await start(reaper, {"start": [READY, {"close": "stdout"}, {"sleep": 600}]}, QUICK)
    await until_gone({started.child.pid})
    assert started.endings == [Ending("the process closed its standard output")]
    assert await started.child.close() is None


async def test_the_status_is_told_when_the_end_follows_the_closed_pipe(reaper: Reaper) -> None:
    started = await start(reaper, {"start": [READY, {"close": "stdout"}, {"sleep": 0.05}, {"exit": 4}]})
    with anyio.fail_after(20):
        await started.has_ended.wait()
    assert started.endings == [Ending("the process ended with status 4", exit_status=4)]
    await started.child.close()


async def test_stderr_is_drained_from_the_first_byte(reaper: Reaper) -> None:
    started = await start(reaper, {"start": [{"errfill": 1 << 20, "ch": "#\r"}, READY]})
    assert len(started.stderr) >= (1 << 20) - 65_536
    assert await started.child.close() is None


async def test_a_cancelled_close_kills_at_once(reaper: Reaper, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = {"start": [{"spawn": "stubborn", "pid_file": str(file)}, READY], "deaf": ["EOF", "TERM"]}
    started = await start(reaper, script, Patience(eof=600))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(started.child.close)
            while not started.child.stdin.is_closed:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    assert started.child._process.returncode == -signal.SIGKILL
    assert await started.child.close() is None
    await until_gone({int(text_of(file))})
    reaper.forget(started.child.pid)  # the grandchild's end may have come after the close


async def test_two_closes_are_one(reaper: Reaper) -> None:
    started = await start(reaper, {"start": [READY], "deaf": ["EOF"]}, QUICK)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(started.child.close)
    assert started.child._process.returncode == -signal.SIGTERM


async def test_closing_from_other_tasks_in_any_order_is_fine(reaper: Reaper) -> None:
    children = [await start(reaper, {"start": [READY]}) for _ in range(3)]
    async with anyio.create_task_group() as group:
        for index in (0, 2, 1):
            group.start_soon(children[index].child.close)
    assert not any(is_alive(each.child.pid) for each in children)


async def test_a_start_that_fails_leaves_nothing(reaper: Reaper, monkeypatch: pytest.MonkeyPatch) -> None:
    before = descriptor_count()
    for program in (
        Program("/nonexistent", (), None, {}),
        Program("/bin/true", ("x" * 4_000_000,), None, {}),
    ):
        with pytest.raises(OSError, match=r"No such file|too long"):
            await ChildProcess.start(
                program,
                on_stdout=lambda _: None,
                on_stderr=lambda _: None,
                on_end=lambda _: None,
                reaper=reaper,
                patience=QUICK,
            )
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(OSError, match="No such file"):
        await ChildProcess.start(
            Program("/bin/sleep", ("600",), None, {}),
            on_stdout=lambda _: None,
            on_stderr=lambda _: None,
            on_end=lambda _: None,
            reaper=reaper,
            patience=QUICK,
        )
    assert descriptor_count() == before


async def test_a_child_that_cannot_be_taken_into_care_is_killed(
    reaper: Reaper, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, alive = descriptor_count(), children(os.getpid())

    def refuse(_descriptor: int, _is_blocking: bool) -> None:
        raise OSError("refused")

    monkeypatch.setattr(os, "set_blocking", refuse)
    with pytest.raises(OSError, match="refused"):
        await Started().start(reaper, "-c", "input()")
    assert (descriptor_count(), children(os.getpid())) == (before, alive)


async def test_two_hundred_lives_leave_descriptors_threads_and_tasks_flat(reaper: Reaper) -> None:
    async def live(index: int) -> None:
        started = await Started().start(
            reaper, "-I", "-S", "-c", f"import sys; sys.stdin.read() if {index % 2} else 0"
        )
        assert await started.child.close() is None

    async def counts() -> tuple[int, int, int]:
        return descriptor_count(), threading.active_count(), len(anyio.get_running_tasks())

    await live(0)
    before = await counts()
    for index in range(0, 200, 4):
        async with anyio.create_task_group() as group:
            for offset in range(4):
                group.start_soon(live, index + offset)
    assert await counts() == before


async def test_a_child_that_is_never_closed_is_complained_about(reaper: Reaper) -> None:
    started = await start(reaper, {"start": [READY]})
    with pytest.warns(ResourceWarning, match="never closed"):
        started.child.__del__()
    await started.child.close()
    started.child.__del__()
