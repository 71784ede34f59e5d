"""The open connections to one place that carry no request. SPEC §connection, More of HTTP.

Whoever takes one owns it until it is given back; the one that was used last is taken first, so that those that are too
many grow old. aiohttp, which opened them, knows nothing of this: to it they are in use until they are closed.
"""

import asyncio
from collections import deque
from typing import Final

from app.connections.http_connector import BoundedHandler

KEEPALIVE_S: Final = 4.0
"""Seconds an idle connection is kept: less than the 5 of common servers, so that it is we who close it.

A request that meets a closing connection has an unknown effect and is not sent again; they should not meet.
"""


class IdleConnections:
    """Owns them until they are taken or grow old."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._connections: deque[BoundedHandler] = deque()
        """The one that was given back last is last."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def take(self) -> BoundedHandler | None:
        """Return one whose peer is there as far as the loop noticed, if any; the others are closed."""
        connections = self._connections
        while connections:
            connection = connections.pop()
            if self._loop.time() - connection.idle_since <= KEEPALIVE_S and not connection.is_closed:
                return connection
            connection.lease.close()
        return None

    def give_back(self, connection: BoundedHandler) -> None:
        """Keep a connection whose answer is read, for as long as its peer may.

        One whose peer has answered without reading all that was asked is ended: the next request would wait behind it.
        """
        transport = connection.transport
        if self._is_closed or transport is None or transport.get_write_buffer_size():
            if transport is not None:
                transport.abort()
            connection.lease.close()
            return
        connection.idle_since = self._loop.time()
        self._connections.append(connection)
        if self._timer is None:
            self._timer = self._loop.call_later(KEEPALIVE_S, self._close_old)

    def close(self) -> None:
        """Close them, and from now on what is given back; idempotent."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._connections:
            self._connections.pop().lease.close()

    def _close_old(self) -> None:
        """Close those that nobody wanted, and come again where there are others."""
        connections, now = self._connections, self._loop.time()
        while connections and now - connections[0].idle_since >= KEEPALIVE_S:
            connections.popleft().lease.close()
        self._timer = None
        if connections:
            left = KEEPALIVE_S - (now - connections[0].idle_since)
            self._timer = self._loop.call_later(left, self._close_old)
