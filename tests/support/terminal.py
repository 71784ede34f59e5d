"""A program in a real pseudo-terminal: keys in, screen out. SPEC §cli."""

import os
import pty
import re
import select
import subprocess
import time
from codecs import getincrementaldecoder
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """What a person sees and types."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self._process = process
        self._master = master
        self.raw = ""
        self._decoder = getincrementaldecoder("utf-8")("replace")

    @property
    def screen(self) -> str:
        """Everything that was written so far, without the control sequences."""
        return CONTROL.sub("", self.raw)

    def type(self, keys: str) -> None:
        """Press keys; a line ends with a line feed, Ctrl-C is ``\\x03``."""
        os.write(self._master, keys.encode())

    def wait_for(self, text: str, seconds: float = 30.0) -> None:
        """Return once the text has been shown.

        Raises:
            AssertionError: it was not; shows what was.
        """
        deadline = time.monotonic() + seconds
        while text not in self.screen:
            assert self._read_some(deadline), f"{text!r} was not shown, but:\n{self.screen}"

    def exit_status(self, seconds: float = 30.0) -> int:
        """Return the exit status once the program has ended and all it wrote was read."""
        deadline = time.monotonic() + seconds
        while self._read_some(deadline):
            pass
        return self._process.wait(seconds)

    def _read_some(self, deadline: float) -> bool:
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not select.select([self._master], [], [], remaining)[0]:
            return False
        try:
            chunk = os.read(self._master, 65536)
        except OSError:
            return False
        self.raw += self._decoder.decode(chunk)
        return bool(chunk)


@contextmanager
def terminal(command: Sequence[str], environment: Mapping[str, str], directory: Path) -> Generator[Terminal]:
    """Run a program with a terminal of its own; both are gone afterwards."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=directory,
        env={**environment, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 single-threaded here, and the session needs its terminal
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _take_terminal() -> None:
    """Make the terminal the controlling one, so that Ctrl-C reaches the program."""
    import fcntl  # noqa: PLC0415 between fork and exec
    import termios  # noqa: PLC0415 likewise

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
