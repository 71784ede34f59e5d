"""A real MCP server built on fastmcp[tasks], over stdio or HTTP, for an environment of its own. SPEC §calls.

Run it as ``fastmcp_server.py`` is. Its tasks live in memory. It imports nothing of the daemon.
"""
# The package is not in the environment that the checks run in.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false

import json
import socket
import sys
from datetime import timedelta
from typing import Any

import anyio
import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

server: FastMCP[Any] = FastMCP("fastmcp-tasks-peer")
server.add_extension(TasksExtension())
QUICK = TaskConfig(mode="required", poll_interval=timedelta(milliseconds=200))
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@server.tool(task=QUICK)
async def crunch(number: int) -> int:
    """Return twice the number, after a while."""
    await anyio.sleep(0.5)
    return 2 * number


@server.tool(task=QUICK)
async def fail(message: str) -> str:
    """Fail as a tool does: the result carries ``isError``."""
    raise ToolError(message)


@server.tool(task=QUICK)
async def greet(ctx: Context) -> Any:
    """Ask for a name, then for another, and tell what was answered."""
    answers: dict[str, Any] = {**(ctx.input_responses or {})}
    state = f"{ctx.request_state or ''}"
    for answer in answers.values():
        state += f"{answer.action} {(answer.content or {}).get('name')};"
    if state.count(";") < 2:
        params = ElicitRequestFormParams(message="Who?", requested_schema=NAME)
        return InputRequiredResult(
            input_requests={"who": ElicitRequest(params=params)}, request_state=state or None
        )
    return state


@server.tool(task=QUICK)
async def hold(gate: str) -> str:
    """Create GATE.entered and run until it is cancelled, which GATE.cancelled tells of."""
    await anyio.Path(f"{gate}.entered").touch()
    try:
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.Path(f"{gate}.cancelled").touch()
    return "never"


def main() -> None:
    """Serve until standard input closes (stdio) or the process is told to stop (HTTP)."""
    if sys.argv[1:] != ["http"]:
        server.run(show_banner=False)
        return
    listener = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    config = uvicorn.Config(
        server.http_app(path="/mcp"),
        log_level="warning",
        timeout_graceful_shutdown=1,
        ws="none",
        lifespan="on",
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
