"""Hearing of a child's end. SPEC §connection."""

import os
import subprocess
import sys
import threading

import anyio
import pytest

from app.connections import exit_watch
from app.connections.exit_watch import ExitWatch
from tests.support.children import descriptor_count

pytestmark = [pytest.mark.spec("connection"), pytest.mark.anyio]


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


def started(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)


@pytest.mark.parametrize("system", ["pidfd", "thread"])
@pytest.mark.parametrize("is_quick", [True, False])
async def test_the_end_is_heard_once_and_in_the_loops_thread(
    monkeypatch: pytest.MonkeyPatch, system: str, is_quick: bool
) -> None:
    if system == "thread":
        monkeypatch.delattr(os, "pidfd_open")
    before = descriptor_count()
    heard: list[tuple[int | None, int]] = []
    ended = anyio.Event()

    def on_exit() -> None:
        heard.append((process.returncode, threading.get_ident()))
        ended.set()

    program = "import sys; sys.exit(7)" if is_quick else "import sys; sys.stdin.read(); sys.exit(7)"
    process = started(program)
    ExitWatch(process, on_exit)
    assert process.stdin is not None
    process.stdin.close()
    with anyio.fail_after(20):
        await ended.wait()
    assert heard == [(7, threading.get_ident())]
    assert descriptor_count() == before
    assert exit_watch._pidfd(process.pid) is None
