"""One child process: its group, its three pipes, its end. SPEC §connection, §shutdown.

Knows no JSON: bytes come out of a callback and go into the writer. MCP 2026-07-28 basic/transports/stdio,
Shutdown.

The life of a child::

    start ── running ──┬─ it ends by itself ──── on_end ──┬── close ── nothing left
                       ├─ it closes stdin/stdout ─ on_end ┤
                       └──────────────────────────────────┘

``on_end`` is called once, when no more output is to be expected; ``close`` has to be called in any case,
because members of the group may have outlived their leader.
"""

import asyncio
import os
import signal
import subprocess
import warnings
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

import anyio

from app.connections.child_environment import Program
from app.connections.exit_watch import ExitWatch
from app.connections.pipe_writer import PipeWriter
from app.connections.process_group import POLL_S, is_left_behind, signal_group
from app.connections.reaper import Reaper

_CHUNK_MAX = 64 * 1024
_CHUNK_MIN = 4 * 1024
_TURN_S = 0.01
"""Seconds one chunk of output may take the loop; a child whose chunks take longer is read in smaller ones."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each step of a child's end may take, in seconds."""

    eof: float = 2.0
    """After its standard input was closed."""
    term: float = 2.0
    """After SIGTERM to its group."""
    kill: float = 2.0
    """After SIGKILL to its group; beyond it closing has failed."""
    group: float = 0.5
    """For members of the group that outlived their leader, between SIGTERM and SIGKILL."""
    silence: float = 1.0
    """For a child that closed a pipe, to end as well."""
    output: float = 0.25
    """For the output of a child that ended, while another process holds its pipes open."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a child ended by itself."""

    reason: str
    exit_status: int | None = None
    signal: str | None = None


class ChildProcess:
    """A running child in a session and process group of its own; whoever starts it closes it."""

    def __init__(
        self,
        spawned: "Spawned",
        *,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None],
        on_end: Callable[[Ending], None],
        reaper: Reaper,
        patience: Patience,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = spawned.process
        self._on_end = on_end
        self._reaper = reaper
        self._patience = patience
        self._exited = asyncio.Event()
        self._closing = asyncio.Lock()
        self._failure: str | None = None
        self._pending_end: asyncio.TimerHandle | None = None
        self._has_ended = False
        self._closed_pipe: str | None = None
        self._stdout = spawned.stdout
        self._outputs = {spawned.stdout: on_stdout, spawned.stderr: on_stderr}
        self._chunk = _CHUNK_MIN
        self.stdin = PipeWriter(spawned.stdin, self._on_stdin_broken)
        """Where its requests go in."""
        for descriptor in self._outputs:
            os.set_blocking(descriptor, False)
            self._loop.add_reader(descriptor, self._read, descriptor)
        self._watch = ExitWatch(self._process, self._on_exit)
        self._is_closed = False  # last: until here its starter cleans up

    @classmethod
    async def start(
        cls,
        program: Program,
        *,
        on_stdout: Callable[[bytes], None],
        on_stderr: Callable[[bytes], None],
        on_end: Callable[[Ending], None],
        reaper: Reaper,
        patience: Patience,
    ) -> "ChildProcess":
        """Return the running child; a failed or cancelled start has left nothing running.

        Raises:
            OSError: it could not be started, or the reaper could not.
        """
        with _killed_on_error(_spawn(program)) as spawned:
            child = cls(
                spawned,
                on_stdout=on_stdout,
                on_stderr=on_stderr,
                on_end=on_end,
                reaper=reaper,
                patience=patience,
            )
        try:
            await reaper.watch(child.pid)
        except BaseException:
            child.kill()
            with anyio.CancelScope(shield=True):
                await child.close()
            raise
        return child

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True):
            warnings.warn(
                f"child process {self._process.pid} was never closed", ResourceWarning, stacklevel=1
            )

    @property
    def pid(self) -> int:
        """Its process id, which is the number of its group."""
        return self._process.pid

    def kill(self) -> None:
        """Kill the whole group, now."""
        self._signal(signal.SIGKILL)

    async def close(self) -> str | None:
        """Return once the child, its group and every descriptor are gone; the reason where they are not.

        The ladder: its standard input is closed, then SIGTERM, then SIGKILL, each with its patience.
        Cancelled, it kills at once and waits only for that. Idempotent; a second caller waits for the
        first.
        """
        async with self._closing:
            if not self._is_closed:
                try:
                    await self._descend()
                except BaseException:
                    self.kill()
                    with anyio.CancelScope(shield=True):
                        await self._has_exited_within(self._patience.kill)
                    raise
                finally:
                    self._finish()
        return self._failure

    async def _descend(self) -> None:
        """Go down the ladder as far as it takes."""
        self._has_ended = True  # whatever ends now ends because of us
        self._forget_pending_end()
        self.stdin.close()
        if (
            await self._has_exited_within(self._patience.eof)
            or await self._has_exited_after(signal.SIGTERM, self._patience.term)
            or await self._has_exited_after(signal.SIGKILL, self._patience.kill)
        ):
            await self._end_group()
        else:
            self._failure = f"process {self.pid} did not end after SIGKILL"

    async def _has_exited_after(self, number: int, seconds: float) -> bool:
        """Signal the group and return whether the leader has ended in time."""
        self._signal(number)
        return await self._has_exited_within(seconds)

    async def _has_exited_within(self, seconds: float) -> bool:
        """Return whether the leader has ended in time."""
        with anyio.move_on_after(seconds):
            await self._exited.wait()
        return self._exited.is_set()

    async def _end_group(self) -> None:
        """Wait for what outlived the leader, which was sent SIGTERM when the leader ended; then kill it."""
        if await self._is_group_gone_within(self._patience.group):
            return
        self._signal(signal.SIGKILL)
        if not await self._is_group_gone_within(self._patience.kill):
            self._failure = f"process group {self.pid} has members that could not be killed"

    async def _is_group_gone_within(self, seconds: float) -> bool:
        """Return whether the group is gone in time; strangers' ends can only be polled."""
        pause = POLL_S
        with anyio.move_on_after(seconds):
            while is_left_behind(self.pid):  # no event tells of other people's children
                await anyio.sleep(pause)
                pause = min(2 * pause, 0.2)
        return not is_left_behind(self.pid)

    def _signal(self, number: int) -> None:
        """Signal the group, but never a stranger's of the same number."""
        if self._process.returncode is None or is_left_behind(self.pid):
            signal_group(self.pid, number)

    def _finish(self) -> None:
        """Close what is still open; the reaper keeps a group that could not be ended."""
        self._is_closed = True
        self._forget_pending_end()
        self.stdin.close()
        for descriptor in list(self._outputs):
            self._close_output(descriptor)
        if self._exited.is_set() and not is_left_behind(self.pid):
            self._reaper.forget(self.pid)

    def _read(self, descriptor: int) -> None:
        """Pass on one chunk of a pipe, so that no child has the loop to itself."""
        try:
            chunk = os.read(descriptor, self._chunk)
        except (BlockingIOError, InterruptedError):
            return
        if chunk:
            begun = self._loop.time()
            self._outputs[descriptor](chunk)
            is_slow = self._loop.time() - begun > _TURN_S
            self._chunk = max(self._chunk // 2, _CHUNK_MIN) if is_slow else min(2 * self._chunk, _CHUNK_MAX)
        else:
            self._close_output(descriptor)
            self._on_output_closed(descriptor)

    def _on_output_closed(self, descriptor: int) -> None:
        if not self._exited.is_set():
            if descriptor == self._stdout:
                self._on_pipe_closed("standard output")
        elif not self._outputs:
            self._end()

    def _close_output(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        os.close(descriptor)
        del self._outputs[descriptor]

    def _on_stdin_broken(self) -> None:
        if not self._exited.is_set():
            self._on_pipe_closed("standard input")

    def _on_pipe_closed(self, pipe: str) -> None:
        """Give a child without one of its pipes a moment to end, so that its exit status can be told."""
        self._closed_pipe = self._closed_pipe or pipe
        if self._pending_end is None and not self._has_ended:
            self._pending_end = self._loop.call_later(self._patience.silence, self._end)

    def _on_exit(self) -> None:
        """Note the leader's end, ask the rest of its group to follow, and wait for the last output."""
        self._exited.set()
        if is_left_behind(self.pid):
            self._signal(signal.SIGTERM)
        else:
            self._reaper.forget(self.pid)
        self._forget_pending_end()
        if self._has_ended:
            return
        if self._outputs:
            self._pending_end = self._loop.call_later(self._patience.output, self._end)
        else:
            self._end()

    def _end(self) -> None:
        """Say, once, that the child has ended by itself."""
        self._forget_pending_end()
        if self._has_ended:
            return
        self._take_rest()
        self._has_ended = True
        self.stdin.close()
        if not self._exited.is_set():
            self._signal(
                signal.SIGTERM
            )  # nobody can talk to it any more, and its close may be long in coming
        self._on_end(self._ending())

    def _take_rest(self) -> None:
        """Pass on what the pipes still hold: a child that was read in small turns wrote it before it ended."""
        self._chunk = _CHUNK_MAX
        for descriptor, take in list(self._outputs.items()):
            with suppress(OSError):
                take(os.read(descriptor, _CHUNK_MAX))

    def _ending(self) -> Ending:
        """Return how it ended, from what is known now."""
        code = self._process.returncode
        if not self._exited.is_set() or code is None:
            return Ending(f"the process closed its {self._closed_pipe}")
        if code >= 0:
            return Ending(f"the process ended with status {code}", exit_status=code)
        return Ending(f"the process was ended by {_signal_name(-code)}", signal=_signal_name(-code))

    def _forget_pending_end(self) -> None:
        if self._pending_end is not None:
            self._pending_end.cancel()
            self._pending_end = None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(frozen=True, slots=True)
class Spawned:
    """A process that was just started, and our ends of its three pipes."""

    process: subprocess.Popen[bytes]
    stdin: int
    stdout: int
    stderr: int


def _spawn(program: Program) -> Spawned:
    """Start the process; nothing but its three pipes reaches it.

    Raises:
        OSError: nothing was started and nothing is open.
    """
    with ExitStack() as on_error, ExitStack() as theirs:
        stdin, to_child = _pipe(theirs, on_error)
        stdout, from_child = reversed(_pipe(on_error, theirs))
        stderr, error_from_child = reversed(_pipe(on_error, theirs))
        process = subprocess.Popen(  # noqa: S603 what to start is the operator's decision; no shell
            [program.executable, *program.args],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            close_fds=True,
            cwd=program.cwd,
            env=dict(program.env),
            start_new_session=True,
        )
        on_error.pop_all()
    return Spawned(process, to_child, from_child, error_from_child)


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    """Return both ends of a new pipe, each to be closed by its owner."""
    ends = os.pipe()
    reading.callback(os.close, ends[0])
    writing.callback(os.close, ends[1])
    return ends


@contextmanager
def _killed_on_error(spawned: Spawned) -> Generator[Spawned]:
    """Leave nothing of a process that could not be taken into care."""
    try:
        yield spawned
    except BaseException:
        signal_group(spawned.process.pid, signal.SIGKILL)
        spawned.process.wait()
        for descriptor in (spawned.stdin, spawned.stdout, spawned.stderr):
            with suppress(OSError):
                os.close(descriptor)
        raise
