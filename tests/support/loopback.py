"""An ASGI application on a loopback port: an in-process client would hide how the daemon streams."""

import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import uvicorn

from app.doors.http_protocol import HttpProtocol

_TLS = ssl.create_default_context()
"""Loading certificates takes longer than most tests; no client here needs them."""


@dataclass(frozen=True, slots=True)
class Loopback:
    """Where the application is served."""

    port: int
    server: uvicorn.Server

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}"

    def client(self, **headers: str) -> httpx2.AsyncClient:
        """Return a client that sends these headers."""
        return httpx2.AsyncClient(
            base_url=self.url, headers=headers, timeout=20, trust_env=False, verify=_TLS
        )

    async def raw(self, request: bytes) -> bytes:
        """Return all that comes back for these bytes until the server closes the connection."""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send(request)
            received = b""
            with anyio.fail_after(20):
                async for chunk in stream:
                    received += chunk
            return received


@asynccontextmanager
async def served(app: Any) -> AsyncGenerator[Loopback]:
    """Serve the application inside the block."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        config = uvicorn.Config(
            app, http=HttpProtocol, lifespan="off", log_config=None, access_log=False, ws="none"
        )
        config.timeout_graceful_shutdown = 5
        server = uvicorn.Server(config)
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listening])
            try:
                yield Loopback(listening.getsockname()[1], server)
            finally:
                server.should_exit = True
