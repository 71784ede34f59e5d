"""The transport of one client, whose writes of one turn of the event loop become one. See ``outbox``.

uvicorn takes it for the transport. Whatever ends the connection orderly writes what waits before.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from uvicorn.server import ServerState

from app.outbox import Outbox

WAIT_MAX: Final = 64 * 1024
"""Bytes that wait at most: what a client does not take has to show to whoever writes more."""


class Clients:
    """What the clients of one server have in common."""

    def __init__(self, server: ServerState, loop: asyncio.AbstractEventLoop) -> None:
        self.requests = server.tasks
        """Those in progress."""
        self.outbox = Outbox[GatheredTransport](loop, _flush_all)


class GatheredTransport:
    """A transport that writes a little later; what else is asked of it is the transport's own."""

    __slots__ = ("_clients", "_size", "_transport", "_waiting", "is_closing")

    def __init__(self, transport: asyncio.Transport, clients: Clients) -> None:
        self._transport = transport
        self._clients = clients
        self._waiting: list[bytes] = []
        self._size = 0
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write the data with what else is written in this turn; nobody changes them until then."""
        if not self._waiting:
            if len(self._clients.requests) <= 1:
                if not self.is_closing():  # uvloop raises where the connection is gone.
                    self._transport.write(data)
                return
            self._clients.outbox.add(self)
        self._waiting.append(data)
        self._size += len(data)
        if self._size > WAIT_MAX:
            self.flush()

    def flush(self) -> None:
        """Write what waits; nothing where the connection was aborted."""
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting and not self.is_closing():
            self._transport.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))

    def close(self) -> None:
        """Close it behind what waits."""
        self.flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the client has yet to take."""
        return self._transport.get_write_buffer_size() + self._size


def _flush_all(transports: Sequence[GatheredTransport]) -> None:
    for each in transports:
        each.flush()
