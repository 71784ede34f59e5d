"""A server of a soak as people write them: on the official SDK, or on fastmcp. SPEC §calls.

Run it by its path: ``python library_peer.py sdk|fastmcp PORT LOG``. It writes down each call that it carried out, as
``peer.py`` does, and imports nothing of the daemon. Its tools:

- ``echo``: returns the text
- ``ask``: asks one question first
"""

import os
import socket
import sys
from typing import Any

import fastmcp
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

SURE: dict[str, Any] = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}


class Log:
    """The file that every peer of a soak writes to."""

    def __init__(self, file: str) -> None:
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def carried_out(self, text: str) -> str:
        """Return the text, written down."""
        os.write(self._file, f"{text}\n".encode())
        return text

    def asked(self, text: str, context: Any) -> str | InputRequiredResult:
        """Return the text once somebody answered, whatever they did."""
        if context.input_responses:
            return self.carried_out(text)
        params = ElicitRequestFormParams(message="Sure?", requested_schema=SURE)
        return InputRequiredResult(input_requests={"sure": ElicitRequest(params=params)}, request_state=text)


def sdk_application(log: Log) -> Any:
    """Return the server on the SDK."""
    server = MCPServer("soaked-sdk")

    @server.tool()
    def echo(text: str) -> str:
        return log.carried_out(text)

    @server.tool()
    def ask(text: str, ctx: Context[Any, Any]) -> str | InputRequiredResult:
        return log.asked(text, ctx)

    return server.streamable_http_app()


def fastmcp_application(log: Log) -> Any:
    """Return the server on fastmcp."""
    server: fastmcp.FastMCP[Any] = fastmcp.FastMCP("soaked-fastmcp")

    @server.tool
    def echo(text: str) -> str:
        return log.carried_out(text)

    @server.tool
    def ask(text: str, ctx: fastmcp.Context) -> str | InputRequiredResult:
        return log.asked(text, ctx)

    return server.http_app(path="/mcp")


def main(library: str, port: int, log: Log) -> None:
    """Serve on this loopback port, whose number is the first line of standard output."""
    application = sdk_application(log) if library == "sdk" else fastmcp_application(log)
    listener = socket.create_server(("127.0.0.1", port))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        application, log_level="error", timeout_graceful_shutdown=1, ws="none", lifespan="on"
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Log(sys.argv[3]))
