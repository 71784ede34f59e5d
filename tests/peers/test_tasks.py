"""Tasks against the server that fastmcp[tasks] is, in its own environment, over both transports. SPEC §calls."""

import json
import subprocess
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.daemon import Daemon, run_input, running_daemon
from tests.support.peers.programs import HERE, http_definition
from tests.support.published import environment_with

pytestmark = [pytest.mark.peers, pytest.mark.timeout(600), pytest.mark.spec("calls")]

PROGRAM = HERE / "fastmcp_tasks_server.py"
READ = ["crunch", "fail", "greet", "hold"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One loop for the module's daemon."""
    return "asyncio"


@pytest.fixture(scope="module")
async def daemon(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Daemon]:
    """One running daemon for all of them."""
    async with running_daemon(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Python that has the server."""
    return str(environment_with(tmp_path_factory.mktemp("peer") / "venv", "fastmcp[tasks]==4.1.4"))


@pytest.fixture(scope="module", params=["stdio", "http"])
def definition(request: pytest.FixtureRequest, python: str) -> Generator[dict[str, Any]]:
    """The server's definition over each transport."""
    if request.param == "stdio":
        args = [str(PROGRAM), "stdio"]
        yield {"name": "tasks", "transport": "stdio", "command": python, "args": args, "read": READ}
        return
    command = [python, str(PROGRAM), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            yield http_definition("tasks", json.loads(process.stdout.readline())["url"], read=READ)
        finally:
            process.kill()


@pytest.fixture
async def workspace(daemon: Daemon, definition: dict[str, Any]) -> AsyncGenerator[str]:
    """A workspace with the server attached; at the end nothing keeps it busy."""
    await daemon.attach("w", definition)
    yield "w"
    assert (await daemon.act("w", "workspace.mcp.detach", name="tasks"))["detached"] is True


async def test_a_task_of_a_real_server_ends_in_its_tools_result(daemon: Daemon, workspace: str) -> None:
    arguments = {"number": 21}
    result = await daemon.act(
        workspace, "workspace.mcp.call", server="tasks", tool="crunch", arguments=arguments
    )
    assert (result["isError"], result["structuredContent"]) == (False, {"result": 42})
    failed = await daemon.act(
        workspace, "workspace.mcp.call", server="tasks", tool="fail", arguments={"message": "E-17"}
    )
    assert (failed["status"], failed["isError"], failed["content"][0]["text"]) == (200, True, "E-17")


async def test_a_task_of_a_real_server_is_asked_twice_in_agui_runs(daemon: Daemon, workspace: str) -> None:
    asked = await daemon.run_action(workspace, "workspace.mcp.call", server="tasks", tool="greet")
    for number, answer in enumerate(
        ({"status": "resolved", "payload": {"name": "ada"}}, {"status": "cancelled"})
    ):
        (interrupt,) = asked[-1]["outcome"]["interrupts"]
        assert (interrupt["reason"], interrupt["message"]) == ("input_required", "Who?")
        entry = {"interruptId": interrupt["id"], **answer}
        async with daemon.run(
            run_input(workspace, None, runId=f"run-{number + 2}", resume=[entry])
        ) as events:
            asked = [event async for event in events]
    assert asked[-1]["outcome"] == {"type": "success"}
    assert asked[-1]["result"]["result"]["content"][0]["text"] == "accept ada;cancel None;"


@pytest.mark.parametrize("way", ["cancel", "disconnect"])
async def test_a_task_of_a_real_server_stops_when_nobody_wants_it(
    daemon: Daemon, workspace: str, tmp_path: Path, way: str
) -> None:
    gate = tmp_path / "gate"
    action = {
        "kind": "workspace.mcp.call",
        "server": "tasks",
        "tool": "hold",
        "arguments": {"gate": str(gate)},
    }
    event: dict[str, Any] = {}
    async with daemon.run(run_input(workspace, action)) as events:
        async for event in events:
            if event["type"] == "TOOL_CALL_START":
                break
        await _appears(anyio.Path(f"{gate}.entered"))
        if way == "cancel":
            operation = event["metadata"]["plurnk"]["operation"]
            await daemon.act(workspace, "workspace.mcp.cancel", operation=operation)
    await _appears(anyio.Path(f"{gate}.cancelled"))


async def _appears(path: anyio.Path) -> None:
    with anyio.fail_after(30):
        while not await path.exists():
            await anyio.sleep(0.02)
