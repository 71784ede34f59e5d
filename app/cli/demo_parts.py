"""The moving parts of the demo: a temporary daemon and a sample server over HTTP. SPEC §cli."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.cli.client import DaemonClient
from app.cli.failures import CommandFailure, DaemonUnreachable
from app.cli.target import TargetOptions, find

START_SECONDS = 30.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class DemoFailed(Exception):
    """A part of the demo did not do what it is for; the text says which and what it wrote."""


@dataclass
class TemporaryDaemon:
    """A real daemon on a home of its own; it may be stopped and started again on that home."""

    directory: Path
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def home(self) -> Path:
        """The daemon's ``PLURNK_HOME``."""
        return self.directory / "home"

    @property
    def pid(self) -> int:
        """The process id of the running daemon."""
        if self._process is None:
            raise DemoFailed("The daemon does not run.")
        return self._process.pid

    def environment(self) -> Mapping[str, str]:
        """Return the daemon's environment: the user's without any setting of another daemon."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLURNK_")}
        return {**inherited, "PLURNK_HOME": str(self.home), "PLURNK_PORT": "0", "PLURNK_LOG_LEVEL": "warning"}

    def start(self) -> None:
        """Return once the daemon answers.

        Raises:
            DemoFailed: it ended, or took too long.
        """
        with (self.directory / "daemon.log").open("ab") as log, interruptions_held_back():
            # A session of its own: Ctrl-C reaches the demo alone, which then stops the daemon in order.
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "app", "serve"],
                cwd=self.directory,
                env=dict(self.environment()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise DemoFailed(f"The daemon did not start. It wrote:\n{self._log()}")
            time.sleep(POLL_SECONDS)

    def client(self) -> DaemonClient:
        """Return a client that found the daemon through its home, as the commands do."""
        return DaemonClient(find(TargetOptions(home=self.home), {}))

    def stop(self) -> None:
        """Ask the daemon to shut down and return once it is gone.

        Raises:
            DemoFailed: it had to be killed, or ended with another status than 0.
        """
        process, self._process = self._process, None
        if process is None:
            return
        status = _ended(process)
        if status != 0:
            raise DemoFailed(f"The daemon ended with {status} instead of 0. It wrote:\n{self._log()}")

    def discard(self) -> None:
        """Return once no process is left, whatever it takes."""
        if self._process is not None:
            _ended(self._process)
            self._process = None

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                client.act("demo", {"kind": "workspace.mcp.list"})
        except DaemonUnreachable:
            return False
        except CommandFailure as failure:
            raise DemoFailed(f"The daemon refused the demo: {failure}") from failure
        return True

    def _log(self) -> str:
        log = self.directory / "daemon.log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else "(nothing)"


@contextmanager
def sample_over_http() -> Generator[str]:
    """Run the sample library on a free loopback port and give its URL; it is gone afterwards.

    Raises:
        DemoFailed: it did not listen.
    """
    process = None
    try:
        with interruptions_held_back():
            process = subprocess.Popen(
                # -P: the user's directory may have a package 'app' of its own.
                [sys.executable, "-P", "-m", "app.cli.samples.library"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        url = process.stdout.readline().strip() if process.stdout is not None else ""
        if not url:
            raise DemoFailed("The sample server did not listen.")
        yield url
    finally:
        if process is not None:
            process.kill()
            process.communicate()


@contextmanager
def interruptions_held_back() -> Generator[None]:
    """Let an interruption inside the block take effect when it ends.

    A process that is being started has no owner yet: whoever is interrupted then could not end it.
    """
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in INTERRUPTIONS}
    try:
        for number in INTERRUPTIONS:
            signal.signal(number, lambda number, _frame: came.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for number in came[:1]:
        signal.raise_signal(number)


@contextmanager
def terminated_like_interrupted() -> Generator[None]:
    """Treat SIGTERM and SIGHUP as Ctrl-C inside the block, so that everything is cleaned up.

    An interruption that a destructor swallowed ends the block at its end.

    Raises:
        KeyboardInterrupt: one of the three came.
    """
    came: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = [signal.signal(number, interrupt) for number in INTERRUPTIONS]
    try:
        yield
        if came:
            raise KeyboardInterrupt
    finally:
        for number, handler in zip(INTERRUPTIONS, before, strict=True):
            signal.signal(number, handler)


def _ended(process: subprocess.Popen[bytes]) -> int:
    """Return the exit status of a process after asking it to end; where it stays, its group is killed."""
    try:
        process.terminate()
        return process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()
