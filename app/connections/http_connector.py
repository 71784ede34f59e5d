"""The connector of the HTTP pool: connections that give up a peer which answers one request without end.

SPEC §connection. aiohttp queues every head it reads, without bound, until somebody takes it; heads of status 1xx
are taken and passed over for as long as they come.
"""

import asyncio
import select
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from typing_extensions import override

HEADS_MAX: Final = 64
"""Heads of answers that may wait to be taken; one request at a time is on a connection."""
_HANGUP: Final = getattr(select, "POLLRDHUP", 0)
"""Linux tells of a peer that closed its side; elsewhere only a connection that is gone altogether shows."""


class BoundedHandler(ResponseHandler):
    """One connection; it is aborted where too many heads wait."""

    _hangup: "select.poll | None" = None
    """Asks the system about the connection; made when it is first used."""

    def has_hung_up(self) -> bool:
        """Return whether the peer has closed its side, as the system knows it now, whether or not the loop noticed."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return True
        if self._hangup is None:
            self._hangup = select.poll()
            self._hangup.register(transport.get_extra_info("socket").fileno(), _HANGUP)
        return bool(self._hangup.poll(0))

    @override
    def data_received(self, data: bytes) -> None:
        """Take in what the peer sent."""
        super().data_received(data)
        if len(self._buffer) > HEADS_MAX and self.transport is not None:
            self.transport.abort()


class BoundedConnector(aiohttp.TCPConnector):
    """Makes connections of that kind; there is no public way to name it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = partial(BoundedHandler, loop=asyncio.get_running_loop())
