"""The daemon that the command tests talk to, and the program itself as a process."""

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from tests.support.daemon import Daemon

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One loop for a module's daemon."""
    return "asyncio"


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One running daemon for a module."""
    daemon = Daemon(tmp_path_factory.mktemp("daemon"), {"GIVEN_SECRET": "canary-given-secret"})
    try:
        yield await daemon.start()
    finally:
        daemon.close()


@pytest.fixture
def plurnk(daemon: Daemon, tmp_path: Path) -> Run:
    """Runs the program against the daemon, found through its home, without a terminal."""

    def run(*arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLURNK_")}
        ours = {"PLURNK_HOME": str(daemon.home), "PLURNK_TOKEN": daemon.token, "COLUMNS": "100"}
        return subprocess.run(
            [sys.executable, "-m", "app", *arguments],
            cwd=tmp_path,
            env={**inherited, **ours, **environment},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
