"""A real MCP server over HTTP whose results may be kept, and which says how often it was asked what. SPEC §watch.

Run it as a program by its path, with ``http``, ``sdk`` or ``fastmcp``, and ``public`` or ``private``; it takes any
free loopback port and prints ``{"url": ...}`` as its first line. ``GET /asked`` gives the requests by method. It
imports nothing of the daemon.
"""

import json
import socket
import sys
from collections import Counter
from typing import Any, Literal, get_args

import uvicorn
from fastmcp import FastMCP
from mcp.server import MCPServer
from mcp.server.caching import CacheHint
from mcp_types.methods import CacheableMethod

TTL_S = 600

asked: Counter[str] = Counter()


def echo(text: str) -> str:
    """Return the text as it came."""
    return text


def welcome() -> str:
    """The resource that is always there."""
    return "welcome"


def app_of(kind: str, scope: Literal["public", "private"]) -> Any:
    """Return the server as an ASGI application."""
    if kind == "sdk":
        hint = CacheHint(ttl_ms=TTL_S * 1000, scope=scope)
        hints = dict.fromkeys(get_args(CacheableMethod), hint)
        official = MCPServer("sdk-peer", version="1", cache_hints=hints)
        official.tool()(echo)
        official.resource("memo://welcome")(welcome)
        return official.streamable_http_app()
    other: FastMCP[Any] = FastMCP("fastmcp-peer", version="1", cache_ttl=TTL_S, cache_scope=scope)
    other.tool(echo)
    other.resource("memo://welcome")(welcome)
    return other.http_app(path="/mcp")


def counted(app: Any) -> Any:
    """Return the application with its count of requests in front."""

    async def count(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/asked":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": json.dumps(asked).encode()})
            return
        if scope["type"] == "http":
            asked[dict(scope["headers"]).get(b"mcp-method", b"?").decode()] += 1
        await app(scope, receive, send)

    return count


def main() -> None:
    """Serve until the process is told to stop."""
    _, _, kind, scope = sys.argv
    listener = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    app = counted(app_of(kind, "public" if scope == "public" else "private"))
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, ws="none", lifespan="on")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
