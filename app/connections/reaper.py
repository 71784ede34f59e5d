"""The daemon's side of the reaper: tells it and the record which groups live. SPEC §connection, §shutdown.

One reaper process a daemon, started with the first child and again when it ends by itself. It holds nothing of
the daemon but the reading end of one pipe, which the kernel closes however the daemon ends.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.to_thread

import app
from app.connections.child_record import ChildRecord
from app.connections.exit_watch import ExitWatch
from app.connections.process_group import start_time

_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from app.connections.reaper_process import main; main()"
_CLOSE_S = 2.0
_RESTART_S = 1.0
"""Seconds between two starts of a reaper that ends by itself."""


class Reaper:
    """Who knows every process group that the daemon started and has not seen the end of."""

    def __init__(self, record: ChildRecord | None = None) -> None:
        self._record = record
        self._groups: dict[int, str | None] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: ExitWatch | None = None
        self._started = -_RESTART_S
        self._pending: asyncio.TimerHandle | None = None
        self._pipe: int | None = None

    @property
    def groups(self) -> frozenset[int]:
        """The groups that are watched."""
        return frozenset(self._groups)

    @property
    def pid(self) -> int | None:
        """The process id of the reaper, where it runs."""
        return self._process.pid if self._process else None

    async def watch(self, group: int) -> None:
        """Have the group killed when the daemon dies, from now until ``forget``.

        Raises:
            OSError: the reaper cannot be started, so the promise cannot be kept.
        """
        self._groups[group] = None
        try:
            # Only Linux tells the start time without another process; the reaper must not wait for that one.
            started = (
                start_time(group)
                if sys.platform == "linux"
                else await anyio.to_thread.run_sync(start_time, group)
            )
            self._groups[group] = started
            self._tell(_alive(group, started))
        except BaseException:
            del self._groups[group]
            raise
        if self._record is not None and started is not None:
            self._record.add(group, started)

    def forget(self, group: int) -> None:
        """Take note that the group has ended: its number is free for strangers."""
        if group not in self._groups:
            return
        del self._groups[group]
        with contextlib.suppress(OSError):
            self._tell(f"- {group}\n")
        if self._record is not None:
            self._record.remove(group)

    async def close(self) -> None:
        """Return when the reaper has ended; it first ends what is still watched."""
        process, self._process = self._process, None
        self._unwatch()
        self._close_pipe()
        if process is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_wait, process)
        if self._record is not None:
            self._record.close()

    def _tell(self, line: str) -> None:
        """Send one line; a reaper that is gone, or does not read, is replaced by one that is told everything.

        Raises:
            OSError: no reaper can be started.
        """
        if self._pipe is not None:
            try:
                os.write(self._pipe, line.encode("ascii"))  # below PIPE_BUF: all of it or nothing
            except OSError:
                self._discard()
            else:
                return
        if self._groups:
            self._start()

    def _start(self) -> None:
        """Start a reaper and tell it every group.

        Raises:
            OSError: it cannot be started.
        """
        reading, writing = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 our own interpreter and program
                [sys.executable, "-I", "-S", "-c", _PROGRAM, str(Path(app.__file__).parent.parent)],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"LC_ALL": "C"},
                start_new_session=True,
            )
        except BaseException:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        self._unwatch()
        self._watch = ExitWatch(self._process, self._on_exit)
        self._started = asyncio.get_running_loop().time()
        self._pipe = writing
        os.write(writing, "".join(_alive(*known) for known in self._groups.items()).encode("ascii"))
        os.set_blocking(writing, False)

    def _on_exit(self) -> None:
        """Replace a reaper that ended by itself: until then nobody would outlive the daemon for the groups' sake."""
        self._process = None
        self._unwatch()
        self._close_pipe()
        loop = asyncio.get_running_loop()
        self._pending = loop.call_at(max(loop.time(), self._started + _RESTART_S), self._restart)

    def _restart(self) -> None:
        """Start a reaper again where it is needed; where that fails, the next group or end tries anew."""
        if self._groups:
            with contextlib.suppress(OSError):
                self._start()

    def _unwatch(self) -> None:
        """Neither hear of the reaper's end nor start another one later."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _discard(self) -> None:
        """Kill and reap a reaper that cannot be told anything; it must not act on what it last heard."""
        self._unwatch()
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        self._close_pipe()

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


def _alive(group: int, started: str | None) -> str:
    """Return the line that makes a group known."""
    return f"+ {group} {started}\n" if started else f"+ {group}\n"


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Reap the reaper; one that hangs is killed."""
    try:
        process.wait(_CLOSE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
