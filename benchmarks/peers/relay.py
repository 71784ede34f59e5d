"""Two hops and nothing else: what comes on ``PORT`` goes to the host of ``URL`` as it is, and back. Reads no message.

What no gateway on this machine, in this language and on this event loop, can be faster than.
"""

import asyncio
import sys
from typing import cast
from urllib.parse import urlsplit

import anyio
from typing_extensions import override


class _End(asyncio.Protocol):
    """One end of a pair; writes what it receives to the other."""

    def __init__(self, other: "_End | None" = None) -> None:
        self.transport: asyncio.Transport
        self._other = other
        self._early = b""
        """What came before there was another end."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._early += data
        else:
            self._other.transport.write(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._other is not None:
            self._other.transport.close()

    def join(self, other: "_End") -> None:
        self._other = other
        other.transport.write(self._early)


async def _main(port: int, url: str) -> None:
    loop, where = asyncio.get_running_loop(), urlsplit(url)
    async with anyio.create_task_group() as group:

        async def join(near: _End) -> None:
            _, far = await loop.create_connection(lambda: _End(near), str(where.hostname), where.port or 0)
            near.join(far)

        class Near(_End):
            @override
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                group.start_soon(join, self)

        server = await loop.create_server(Near, "127.0.0.1", port)
        await server.serve_forever()


if __name__ == "__main__":
    anyio.run(_main, int(sys.argv[1]), sys.argv[2], backend_options={"use_uvloop": True})
