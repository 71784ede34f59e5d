"""A daemon that stops while a server works on a task tells it to stop, before the connection closes. SPEC §shutdown."""

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.operations.test_scripted_tasks import script
from tests.support.children import SCRIPTED_STDIO
from tests.support.daemon import Daemon, run_input
from tests.support.deferring import TASK, handle, state
from tests.support.peers.programs import stdio_definition

# A start of a whole daemon, on machines that may be busy.
pytestmark = [pytest.mark.timeout(180), pytest.mark.spec("calls", "shutdown")]


async def test_a_task_is_cancelled_at_its_server_by_a_daemon_that_stops(
    new_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    told = script(
        log,
        tools_call=[{"result": handle()}],
        tasks_get=[{"result": state("working")}],
        tasks_cancel=[{"result": {"resultType": "complete"}}],
    )
    daemon = await new_daemon({}).start()
    await daemon.attach("w", stdio_definition("p", SCRIPTED_STDIO, told, read=["echo"]))
    action = {"kind": "workspace.mcp.call", "server": "p", "tool": "echo"}
    async with daemon.run(run_input("w", action)) as events:
        seen = [await anext(events)]
        with anyio.fail_after(30):
            while b"tasks/get" not in log.read_bytes():
                await anyio.sleep(0.02)
        assert await daemon.stop() == 0
        seen += [event async for event in events]
    assert seen[-1]["outcome"] == {"type": "cancelled"}
    messages = [json.loads(line) for line in log.read_bytes().splitlines() if line != b"EOF"]
    cancels = [each["params"]["taskId"] for each in messages if each["method"] == "tasks/cancel"]
    assert cancels == [TASK]
    assert "Traceback" not in daemon.log
