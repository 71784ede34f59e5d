"""The connector of the HTTP pool: connections that give up a peer which answers one request without end.

SPEC §connection. aiohttp queues every head it reads, without bound, until somebody takes it; heads of status 1xx
are taken and passed over for as long as they come.
"""

import asyncio
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from typing_extensions import override

HEADS_MAX: Final = 64
"""Heads of answers that may wait to be taken; one request at a time is on a connection."""


class BoundedHandler(ResponseHandler):
    """One connection; it is aborted where too many heads wait."""

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
