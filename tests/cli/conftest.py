"""The daemon that the command tests talk to, and the program itself as a process."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner

from app.cli.app import app
from tests.support.daemon import Daemon
from tests.support.terminal import Terminal, terminal

Run = Callable[..., subprocess.CompletedProcess[str]]
CLIENT = (sys.executable, "-c", "from app.cli.app import app; app(prog_name='plurnk-mcpd')")
"""The program with the client commands alone: the daemon's own would triple the time of a start."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Generator[Daemon]:
    """One running daemon for a module."""
    daemon = Daemon(tmp_path_factory.mktemp("daemon"), {"GIVEN_SECRET": "canary-given-secret"})
    try:
        yield anyio.run(daemon.start)
    finally:
        daemon.close()


@pytest.fixture
def plurnk(daemon: Daemon) -> Run:
    """Runs a client command against the daemon, found through its home, without a terminal and in this process."""

    def run(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        ours = {**_environment(daemon), **environment}
        ended = CliRunner().invoke(app, arguments, input=stdin, obj=ours, env={"COLUMNS": "100"})
        if isinstance(ended.exception, Exception):
            raise ended.exception
        return subprocess.CompletedProcess(arguments, ended.exit_code, ended.stdout, ended.stderr)

    return run


@pytest.fixture
def plurnk_process(daemon: Daemon, tmp_path: Path) -> Run:
    """Runs a client command as a process of its own, as a shell does."""

    def run(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*CLIENT, *arguments],
            cwd=tmp_path,
            env={**_environment(daemon), "COLUMNS": "100", **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def terminal_of(daemon: Daemon, tmp_path: Path) -> Callable[..., AbstractContextManager[Terminal]]:
    """Runs a client command in a terminal of its own, against the daemon."""

    def run(*arguments: str, **environment: str) -> AbstractContextManager[Terminal]:
        return terminal([*CLIENT, *arguments], {**_environment(daemon), **environment}, tmp_path)

    return run


def _environment(daemon: Daemon) -> dict[str, str]:
    foreign = ("PLURNK_", "DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return {**inherited, "PLURNK_HOME": str(daemon.home), "PLURNK_TOKEN": daemon.token}
