"""A real MCP server built on fastmcp, over stdio or HTTP, with every feature a journey needs. SPEC §revision.

Run it as a program by its path, with ``stdio`` or ``http``; over HTTP it takes any free loopback
port and prints ``{"url": ...}`` as its first line. A second word, ``changing``, has it tell of its changes. It imports
nothing of the daemon.
"""

import json
import os
import socket
import sys
from typing import Any

import anyio
import uvicorn
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.dependencies import get_http_headers
from fastmcp.tools import Tool
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import SubscriptionsListenRequestParams
from pydantic import BaseModel

NAMES = ("ada", "alan", "barbara", "grace")

changes = InMemorySubscriptionBus()
server: FastMCP[Any] = FastMCP("fastmcp-peer", version="4.2.3", instructions="Tools for journeys.")


class Sum(BaseModel):
    """The structured result of ``add``."""

    total: int


@server.tool
def echo(text: str) -> str:
    """Return the text as it came."""
    return text


@server.tool
def add(a: int, b: int) -> Sum:
    """Add two integers; the result is structured."""
    return Sum(total=a + b)


@server.tool
async def count(steps: int, ctx: Context) -> str:
    """Count to ``steps``, reporting each one."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@server.tool
async def hold(gate: str) -> str:
    """Create GATE.entered and answer once GATE.open exists; GATE.cancelled tells of a cancellation."""
    await anyio.Path(f"{gate}.entered").touch()
    try:
        while not await anyio.Path(f"{gate}.open").exists():
            await anyio.sleep(0.01)
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await anyio.Path(f"{gate}.cancelled").touch()
        raise
    return "released"


@server.tool
def fail(message: str) -> str:
    """Fail as a tool does: the answer carries ``isError``."""
    raise ToolError(message)


@server.tool
def variable(name: str) -> str:
    """Return a variable of this process's environment, or ``(unset)``."""
    return os.environ.get(name, "(unset)")


@server.tool
def header(name: str) -> str:
    """Return a header of the request that carried this call, or ``(unset)``."""
    return get_http_headers(include_all=True).get(name.lower(), "(unset)")


@server.resource("memo://welcome", mime_type="text/plain")
def welcome() -> str:
    """The resource that is always there."""
    return "welcome"


@server.resource("memo://people/{name}", mime_type="text/plain")
def person(name: str) -> str:
    """One person's memo."""
    return f"memo about {name}"


@server.prompt
def greet(name: str, tone: str = "warm") -> str:
    """Ask for a greeting."""
    return f"Write a {tone} greeting for {name}."


@server.completion
def complete(ref: Any, argument: Any, context: Any) -> list[str] | None:
    """Complete a person's name by its beginning."""
    if argument.name != "name":
        return None
    return [name for name in NAMES if name.startswith(argument.value)]


@server.tool
async def grow(name: str, times: int = 1) -> str:
    """Offer one more tool of this name and announce it, so many times."""

    def grown() -> str:
        return name

    server.add_tool(Tool.from_function(grown, name=name))
    for _ in range(times):
        await changes.publish(ToolsListChanged())
    return name


def offer_changes() -> None:
    """Serve ``subscriptions/listen``, which fastmcp leaves to the SDK server inside it and does not offer by itself."""
    server._mcp_server.add_request_handler(
        "subscriptions/listen", SubscriptionsListenRequestParams, ListenHandler(changes)
    )


def main() -> None:
    """Serve until standard input closes (stdio) or the process is told to stop (HTTP)."""
    if sys.argv[2:] == ["changing"]:
        offer_changes()
    if sys.argv[1] != "http":
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
