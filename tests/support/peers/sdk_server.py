"""A real MCP server built on the official SDK, over stdio or HTTP, for journeys. SPEC §revision.

Run it as a program by its path, with ``stdio`` or ``http``; over HTTP it takes any free loopback
port and prints ``{"url": ...}`` as its first line. It imports nothing of the daemon.
"""

import json
import os
import socket
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import Completion, ImageContent, PromptReference, ResourceTemplateReference, TextContent
from pydantic import BaseModel

NAMES = ("ada", "alan", "barbara", "grace")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="

server = MCPServer("sdk-peer", version="2.3.0", instructions="Tools for journeys.")


class Sum(BaseModel):
    """The structured result of ``add``."""

    total: int


@server.tool()
def echo(text: str) -> str:
    """Return the text as it came."""
    return text


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two integers; the result is structured."""
    return Sum(total=a + b)


@server.tool()
async def count(steps: int, ctx: Context[Any, Any]) -> str:
    """Count to ``steps``, reporting each one."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"counted to {steps}"


@server.tool()
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


@server.tool()
def fail(message: str) -> str:
    """Fail as a tool does: the answer carries ``isError``."""
    raise ToolError(message)


@server.tool()
def variable(name: str) -> str:
    """Return a variable of this process's environment, or ``(unset)``."""
    return os.environ.get(name, "(unset)")


@server.tool()
def header(name: str, ctx: Context[Any, Any]) -> str:
    """Return a header of the request that carried this call, or ``(unset)``."""
    return (ctx.headers or {}).get(name.lower(), "(unset)")


@server.tool()
def process() -> str:
    """Return this process's id and working directory."""
    return json.dumps({"pid": os.getpid(), "cwd": os.getcwd()})  # noqa: PTH109 a plain string


@server.tool()
def picture() -> list[TextContent | ImageContent]:
    """Return a text part and an image part."""
    return [
        TextContent(type="text", text="one pixel"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
    ]


@server.tool()
async def grow(name: str, ctx: Context[Any, Any], times: int = 1) -> str:
    """Offer one more tool of this name and announce it, so many times."""

    def grown() -> str:
        return name

    server.add_tool(grown, name=name)
    for _ in range(times):
        await ctx.notify_tools_changed()
    return name


@server.tool()
async def touch(uri: str, ctx: Context[Any, Any]) -> str:
    """Announce that a resource was updated."""
    await ctx.notify_resource_updated(uri)
    return uri


@server.tool()
def blow_up(code: int) -> str:
    """End this process at once, with the exit status."""
    os._exit(code)


@server.resource("memo://welcome", mime_type="text/plain")
def welcome() -> str:
    """The resource that is always there."""
    return "welcome"


@server.resource("memo://people/{name}", mime_type="text/plain")
def person(name: str) -> str:
    """One person's memo."""
    return f"memo about {name}"


@server.prompt()
def greet(name: str, tone: str = "warm") -> str:
    """Ask for a greeting."""
    return f"Write a {tone} greeting for {name}."


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: Any, context: Any
) -> Completion | None:
    """Complete a person's name by its beginning."""
    if argument.name != "name":
        return None
    values = [name for name in NAMES if name.startswith(argument.value)]
    return Completion(values=values, total=len(values), has_more=False)


def listen() -> socket.socket:
    """Return a listening loopback socket and announce its URL on standard output."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    return listener


def main() -> None:
    """Serve until standard input closes (stdio) or the process is told to stop (HTTP)."""
    if sys.argv[1:] != ["http"]:
        server.run()
        return
    listener = listen()
    config = uvicorn.Config(
        server.streamable_http_app(),
        log_level="warning",
        timeout_graceful_shutdown=1,
        ws="none",
        lifespan="on",
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
