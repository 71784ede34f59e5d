"""A server on the first line of the Python SDK, which speaks earlier revisions alone, over HTTP. SPEC §revision.

Run it with a Python that has ``mcp`` 1.x; it takes any free loopback port and prints ``{"url": ...}``.
"""

import json
import socket

import uvicorn
from mcp.server.fastmcp import FastMCP  # pyright: ignore[reportAttributeAccessIssue] the SDK here is another line

server = FastMCP("sdk-v1-peer")


@server.tool()  # pyright: ignore[reportUntypedFunctionDecorator] likewise
def echo(text: str) -> str:
    """Return the text as it came."""
    return text


if __name__ == "__main__":
    listener = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
