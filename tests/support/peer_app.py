"""An application of the tests' own on a loopback port, its lifespan included, built when its origin is known.

The daemon's application is ``loopback``; this one is for its peers.
"""

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
import uvicorn
from starlette.types import ASGIApp


@asynccontextmanager
async def peer_app(build: Callable[[str], ASGIApp]) -> AsyncGenerator[str]:
    """Serve what ``build`` returns for its origin inside the block, and give the origin."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        config = uvicorn.Config(build(origin), lifespan="on", log_config=None, access_log=False, ws="none")
        config.timeout_graceful_shutdown = 1
        server = uvicorn.Server(config)
        ended = anyio.Event()

        async def serve() -> None:
            await server.serve([listening])
            ended.set()

        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            try:
                yield origin
            finally:
                # A server that is cancelled instead, because a test failed, leaves its lifespan behind.
                server.should_exit = True
                with anyio.move_on_after(5, shield=True):
                    await ended.wait()
