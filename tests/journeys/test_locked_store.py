"""Another process has locked the database: changes are refused together and soon, all else goes on. SPEC §state."""

import time
from collections.abc import Callable
from typing import Any

import anyio
import httpx2
import pytest

from tests.support.daemon import Daemon
from tests.support.databases import held
from tests.support.peers.programs import http_definition, scripted_definition
from tests.support.processes import children, peers_of, until_gone
from tests.support.standing import standing, stored, until_it_stands

pytestmark = [pytest.mark.timeout(120), pytest.mark.spec("state", "lifecycle")]

PATIENCE_S, MARGIN_S = 5.0, 4.0
"""What is waited for a lock, and what a busy machine may add; a second wait would be beyond both."""


async def test_changes_that_meet_a_lock_are_refused_together_and_a_stop_is_not_held_up(
    new_daemon: Callable[..., Daemon], scripted_url: str
) -> None:
    daemon = await new_daemon({}).start()
    for name in ("kept", "gone"):
        await daemon.attach("w", scripted_definition(name, read=["echo"]))
    before = await standing(daemon, "w", scripted_url)
    with held(daemon.home / "plurnk.db"):
        told = await _told(daemon, scripted_url)
        assert {name: code for name, (code, _) in told.items()} == {
            "attach stdio": "store-unavailable",
            "attach http": "store-unavailable",
            "replace": "store-unavailable",
            "detach": "store-unavailable",
            "detach of nothing": "server-not-found",
        }
        slowest = max(seconds for _, seconds in told.values())
        assert slowest < PATIENCE_S + MARGIN_S, told
        await until_it_stands(daemon, "w", scripted_url, before)
        await _stopped_during_a_write(daemon)
    assert stored(daemon) == before.rows
    await daemon.start()
    await daemon.attach("w", http_definition("web", scripted_url))
    assert set(await daemon.servers("w")) == {"kept", "gone", "web"}


async def _told(daemon: Daemon, url: str) -> dict[str, tuple[str, float]]:
    """Return what each of some changes at once is told, and after how many seconds."""
    told: dict[str, tuple[str, float]] = {}

    async def change(what: str, kind: str, **params: Any) -> None:
        began = time.monotonic()
        answer = await daemon.act("w", f"workspace.mcp.{kind}", **params)
        told[what] = str(answer["code"]), time.monotonic() - began

    async with anyio.create_task_group() as group:

        def begin(what: str, kind: str, **params: Any) -> None:
            group.start_soon(lambda: change(what, kind, **params))

        begin("attach stdio", "attach", server=scripted_definition("new"))
        begin("attach http", "attach", server=http_definition("web", url))
        begin("replace", "replace", server=scripted_definition("kept", read=[]))
        begin("detach", "detach", name="gone")
        begin("detach of nothing", "detach", name="nothing")
        # Nobody else is held up.
        for name in ("kept", "gone"):
            assert await daemon.call_text("w", name, "echo", text=name) == name
    return told


async def _stopped_during_a_write(daemon: Daemon) -> None:
    """Stop the daemon while a change waits for the lock: it is told one of two things, and nothing is left."""
    codes: list[str] = []

    async def attach() -> None:
        response: httpx2.Response = await daemon.post(
            "w", "workspace.mcp.attach", server=scripted_definition("late")
        )
        codes.append(response.json()["code"])

    family = children(daemon.pid)
    async with anyio.create_task_group() as group:
        group.start_soon(attach)
        with anyio.fail_after(10):
            while len(peers_of(daemon.pid)) < 3:
                await anyio.sleep(0.01)
        family |= children(daemon.pid)
        began = time.monotonic()
        assert await daemon.stop() == 0
        assert time.monotonic() - began < 10 + MARGIN_S
    assert codes[0] in {"store-unavailable", "shutting-down"}
    await until_gone(family)
