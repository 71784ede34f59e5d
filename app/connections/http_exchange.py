"""One POST over a pooled connection, and the head of its answer. SPEC §connection; RFC 9110, RFC 9112.

aiohttp has the parts: the connector (pool, TLS, proxy), the parser and the reader of the body. Its session and its
request and response classes stand between those parts for what we never do (cookies, forms, history, tracing, a task
that writes) and cost more than the parts. So the parts are put together here. See docs/decisions/0006.
"""

import asyncio
from typing import Final, cast

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.helpers import TimerNoop
from aiohttp.streams import StreamReader
from multidict import CIMultiDict, CIMultiDictProxy

from app.connections.http_connector import BoundedHandler

NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
_NO_TIMER: Final = TimerNoop()
_SWITCHED: Final = 101


class Place:
    """Where requests go: one URL with the headers that every request there has."""

    def __init__(self, request: ClientRequest, connector: aiohttp.BaseConnector) -> None:
        """Take the request that connections are asked for with; it is never sent."""
        self._request = request
        request.headers.popall("Content-Length", None)  # Of the request without a body.
        self._connector = connector
        url = request.url
        self._target = str(url) if request.proxy and not request.is_ssl() else url.raw_path_qs

    async def connect(self) -> Connection:
        """Return a connection, a pooled one where there is one.

        Raises:
            aiohttp.ClientError: there is none to be had.
        """
        return await self._connector.connect(self._request, [], NO_TIMEOUT)

    def head(self, headers: CIMultiDict[str], size: int) -> bytes:
        """Return the head of a request with a body of this size; what ``headers`` names is theirs alone.

        Raises:
            ValueError: a header would break out of its line.
        """
        lines = [f"POST {self._target} HTTP/1.1"]
        # Read anew each time: connecting through a proxy adds what the proxy wants to see.
        lines += [f"{name}: {value}" for name, value in self._request.headers.items() if name not in headers]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        text = "\r\n".join((*lines, f"Content-Length: {size}", "", ""))
        breaks = len(lines) + 2
        if text.count("\r") != breaks or text.count("\n") != breaks or "\0" in text:
            raise ValueError("a header with a line break")
        return text.encode()


class Post:
    """One request and the head of its answer; ``close`` it, whatever became of it."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: CIMultiDictProxy[str]
        self.content: StreamReader
        self._connection: Connection | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def is_begun(self) -> bool:
        """Whether a byte of the request may have left."""
        return self._transport is not None

    @property
    def peer(self) -> str | None:
        """The address it was written to."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if isinstance(name, tuple) else None

    async def send(self, place: Place, headers: CIMultiDict[str], body: bytes) -> None:
        """Have the head of the answer on return.

        Raises:
            aiohttp.ClientError, OSError: there is none.
        """
        self._connection = connection = await place.connect()
        protocol, transport = cast("BoundedHandler | None", connection.protocol), connection.transport
        if protocol is None or transport is None or protocol.has_hung_up():
            raise aiohttp.ClientConnectionResetError("the connection was closed before the request")
        head = place.head(headers, len(body))
        protocol.set_response_params(timer=_NO_TIMER, read_until_eof=True)
        self._transport = transport
        transport.write(head + body)
        while True:
            message, content = await protocol.read()
            if message.code == _SWITCHED or not 100 <= message.code < 200:
                break
        self.status, self.headers, self.content = message.code, message.headers, content
        content.on_eof(self._release)

    def _release(self) -> None:
        """Give the connection back to the pool: the answer is whole."""
        connection = self._connection
        if connection is not None and connection.protocol is not None and not connection.protocol.upgraded:
            self._connection = None
            connection.release()

    def close(self) -> None:
        """Close the connection unless it was given back; what of the request is unwritten is dropped. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if connection.transport is not None and connection.transport.get_write_buffer_size():
            connection.transport.abort()
        connection.close()
