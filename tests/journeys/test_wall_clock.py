"""The wall clock is set while things wait, last and expire: none of them notices. SPEC §oauth, §watch, §observe."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.daemon import Daemon
from tests.support.peers.programs import http_definition, scripted_definition
from tests.support.processes import until_exists
from tests.support.scripted_http import result, scripted_http
from tests.support.signing_in import ENVIRONMENT, signing_in

pytestmark = [pytest.mark.timeout(120), pytest.mark.spec("oauth", "watch", "calls", "observe")]

CLOCK = Path(__file__).parents[1] / "support" / "wall_clock"
JUMPS = [timedelta(days=400), timedelta(days=-400), timedelta()]
KEPT = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"}


async def test_a_wall_clock_that_is_set_forward_and_back_ends_prolongs_and_loses_nothing(
    new_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    clock, gate = tmp_path / "clock", tmp_path / "gate"
    clock.write_text("0")
    path = os.pathsep.join([str(CLOCK), *filter(None, [os.environ.get("PYTHONPATH")])])
    daemon = await new_daemon({**ENVIRONMENT, "PYTHONPATH": path, "WALL_CLOCK": str(clock)}).start()
    contents = result({**KEPT, "contents": [{"uri": "memo:x", "text": "x"}]})
    listed = result({"resources": [{"uri": "memo:x", "name": "x"}]})
    read: dict[str, Any] = {"uri": "p:///resources/memo%3Ax"}
    held: list[int] = []

    async def hold() -> None:
        call: dict[str, Any] = {"server": "p", "tool": "hold", "arguments": {"gate": str(gate)}}
        held.append((await daemon.act("holding", "workspace.mcp.call", **call))["status"])

    async with (
        scripted_http({"resources/read": contents, "resources/list": listed}) as peer,
        signing_in(daemon, "signed") as signed,
        signing_in(daemon, "pending") as pending,
        anyio.create_task_group() as group,
    ):
        signed.granting.token_lifetime = 3600.0
        await signed.signed_in()
        waiting = [await pending.attach()]
        await daemon.attach("cached", http_definition("p", peer.url))
        await daemon.act("cached", "workspace.mcp.read", **read)
        await daemon.attach("holding", scripted_definition("p", read=["hold"]))
        group.start_soon(hold)
        await until_exists(gate.with_suffix(".entered"))
        for jump in JUMPS:
            clock.write_text(str(int(jump.total_seconds())))
            # A sign-in that waited is still waited for, and the next one is begun under the clock as it is.
            done = await pending.consented(waiting.pop())
            assert done["status"] in {200, 201}, done
            assert (await pending.act("detach", name="p"))["status"] == 200
            waiting.append(await pending.attach())
            # A token has not expired, nor what is kept.
            assert (await signed.call("echo", text="x"))["status"] == 200
            assert (await daemon.act("cached", "workspace.mcp.read", **read))["contents"]
            await _require_audited(daemon, jump)
        assert held == []
        gate.with_suffix(".open").touch()
    assert held == [200]
    assert signed.granting.count("token:refresh_token") == 0
    assert len(peer.of("resources/read")) == 1
    assert await daemon.stop() == 0


async def _require_audited(daemon: Daemon, jump: timedelta) -> None:
    """The newest row is dated by the clock as it is set, and the oldest is still there."""
    async with daemon.client() as client:
        rows = (await client.get("/v1/audit")).json()["audit"]
    dated = datetime.fromisoformat(rows[0]["at"])
    assert abs(dated - (datetime.now(UTC) + jump)) < timedelta(days=1)
    assert (rows[0]["workspace"], rows[-1]["workspace"]) == ("pending", "signed")
