"""Real MCP servers, on the official SDK or on fastmcp, that ask in the middle of what they do. SPEC §calls.

Run it as a program by its path: ``eliciting_server.py stdio|http sdk|fastmcp``; over HTTP it takes any free
loopback port and prints ``{"url": ...}`` as its first line. It imports nothing of the daemon.
"""

import json
import socket
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal

import fastmcp
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp_types import (
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequest,
    InputRequiredResult,
)
from pydantic import BaseModel

ENVIRONMENT: dict[str, Any] = {
    "type": "object",
    "properties": {"env": {"type": "string", "enum": ["staging", "prod"]}},
    "required": ["env"],
}
YES: dict[str, Any] = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
PAGE = "https://pay.example/checkout?order=1"


def form(message: str, schema: dict[str, Any]) -> InputRequest:
    """Return a form."""
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def link(message: str) -> InputRequest:
    """Return a URL to open."""
    return ElicitRequest(params=ElicitRequestURLParams(message=message, url=PAGE))


def deployed(service: str, ctx: Any) -> str | InputRequiredResult:
    """Deploy once the environment is known; to production only after a second question."""
    answers = ctx.input_responses or {}
    if ctx.request_state == "sure?":
        sure = answers["sure"]
        is_sure = sure.action == "accept" and sure.content["sure"]
        return f"deployed {service} to prod" if is_sure else f"{service}: {sure.action} at the end"
    if "environment" not in answers:
        asked: dict[str, InputRequest] = {
            "environment": form("Which environment should be deployed?", ENVIRONMENT)
        }
        return InputRequiredResult(input_requests=asked, request_state="where?")
    answer = answers["environment"]
    if answer.action != "accept":
        return f"{service}: {answer.action}"
    if answer.content["env"] == "prod":
        return InputRequiredResult(input_requests={"sure": form("Really?", YES)}, request_state="sure?")
    return f"deployed {service} to {answer.content['env']}"


def paid(ctx: Any) -> str | InputRequiredResult:
    """Take a payment on a page, and a name on a form, at once."""
    answers = ctx.input_responses or {}
    if not answers:
        asked: dict[str, InputRequest] = {"page": link("Pay first."), "receipt": form("A receipt?", YES)}
        return InputRequiredResult(input_requests=asked, request_state="paying")
    return f"page {answers['page'].action}, receipt {answers['receipt'].action}, state {ctx.request_state}"


def polled(ctx: Any) -> str | InputRequiredResult:
    """Ask for nothing but to be asked again, twice."""
    rounds = int(ctx.request_state or "0")
    return f"polled {rounds} times" if rounds == 2 else InputRequiredResult(request_state=str(rounds + 1))


def unlocked(name: str, ctx: Any) -> str | InputRequiredResult:
    """Tell about somebody once the reader says for what."""
    answers = ctx.input_responses or {}
    if not answers:
        return InputRequiredResult(input_requests={"sure": form(f"May {name} know?", YES)})
    return f"about {name}: {answers['sure'].action}"


class Size(BaseModel):
    """What the SDK's own resolver asks for."""

    inches: int


def sdk_server() -> tuple[Callable[[], None], Callable[[], Any]]:
    """Return how the SDK's server is run over stdio and its HTTP application."""
    server = MCPServer("asking-sdk", version="2.3.0")

    def size(pizza: str) -> Elicit[Size]:
        return Elicit(f"How large a {pizza}?", Size)

    @server.tool()
    def deploy(service: str, ctx: Context[Any, Any]) -> str | InputRequiredResult:
        return deployed(service, ctx)

    @server.tool()
    def pay(ctx: Context[Any, Any]) -> str | InputRequiredResult:
        return paid(ctx)

    @server.tool()
    def poll(ctx: Context[Any, Any]) -> str | InputRequiredResult:
        return polled(ctx)

    @server.tool()
    def order(pizza: str, size: Annotated[Size, Resolve(size)]) -> str:
        return f"{pizza} of {size.inches}"

    @server.resource("memo://locked/{name}", mime_type="text/plain")
    def locked(name: str, ctx: Context[Any, Any]) -> str | InputRequiredResult:
        return unlocked(name, ctx)

    @server.prompt()
    def introduce(name: str, ctx: Context[Any, Any]) -> str | InputRequiredResult:
        return unlocked(name, ctx)

    return server.run, server.streamable_http_app


def fastmcp_server() -> tuple[Callable[[], None], Callable[[], Any]]:
    """Return how fastmcp's server is run over stdio and its HTTP application."""
    server: fastmcp.FastMCP[Any] = fastmcp.FastMCP("asking-fastmcp", version="4.2.3")

    @server.tool
    def deploy(service: str, ctx: fastmcp.Context) -> str | InputRequiredResult:
        return deployed(service, ctx)

    @server.tool
    def pay(ctx: fastmcp.Context) -> str | InputRequiredResult:
        return paid(ctx)

    @server.tool
    def poll(ctx: fastmcp.Context) -> str | InputRequiredResult:
        return polled(ctx)

    @server.resource("memo://locked/{name}", mime_type="text/plain")
    def locked(name: str, ctx: fastmcp.Context) -> str | InputRequiredResult:
        return unlocked(name, ctx)

    @server.prompt
    def introduce(name: str, ctx: fastmcp.Context) -> str | InputRequiredResult:
        return unlocked(name, ctx)

    return lambda: server.run(show_banner=False), lambda: server.http_app(path="/mcp")


def main(way: Literal["stdio", "http"], library: Literal["sdk", "fastmcp"]) -> None:
    """Serve until standard input closes (stdio) or the process is told to stop (HTTP)."""
    run, http_app = sdk_server() if library == "sdk" else fastmcp_server()
    if way == "stdio":
        run()
        return
    listener = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    config = uvicorn.Config(
        http_app(), log_level="warning", timeout_graceful_shutdown=1, ws="none", lifespan="on"
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])  # pyright: ignore[reportArgumentType] whoever runs it knows the words
