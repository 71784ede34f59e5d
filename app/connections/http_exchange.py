"""One POST over a pooled connection, and the answer as far as it is HTTP. SPEC §connection; RFC 9110, RFC 9112.

aiohttp has the parts: the connector (TLS, proxy), the parser and the reader of the body. Its session, its pool and its
request and response classes stand between those parts for what we never do (cookies, forms, history, tracing, a task
that writes) and cost more than the parts. So the parts are put together here, and an answer that is whole at once needs
hardly any of them. See docs/decisions/0006 and 0007.
"""

import asyncio
from typing import Final, cast

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from multidict import CIMultiDict, CIMultiDictProxy

from app.connections.http_connector import BoundedHandler
from app.connections.http_request import HeaderLines, lines_of
from app.connections.idle_connections import IdleConnections
from app.connections.whole_answer import WholeAnswer

NO_TIMEOUT: Final = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
COMMON_MAX: Final = 64
"""Of how many sets of headers a place remembers what goes with them."""
_SWITCHED: Final = 101
_NO_HEADERS: Final[CIMultiDictProxy[str]] = CIMultiDictProxy(CIMultiDict())


class Place:
    """Where requests go: one URL with the headers that every request there has."""

    def __init__(
        self, request: ClientRequest, connector: aiohttp.BaseConnector, idle: IdleConnections
    ) -> None:
        """Take the request that connections are asked for with; it is never sent."""
        self._request = request
        request.headers.popall("Content-Length", None)  # Of the request without a body.
        self._connector = connector
        self._idle = idle
        self.give_back = idle.give_back
        """Keep a connection that carries no request any more for the next one."""
        self._is_ready = request.proxy is None
        """Whether the request has what a proxy wants to see, which connecting adds."""
        url = request.url
        self._target = str(url) if request.proxy and not request.is_ssl() else url.raw_path_qs
        self._common: dict[frozenset[str], str] = {}
        """The lines that every request begins with, by what it names itself; until there is another connection."""

    def take(self) -> BoundedHandler | None:
        """Return a pooled connection, if there is one."""
        return self._idle.take() if self._is_ready else None

    async def connect(self) -> BoundedHandler:
        """Return a new connection.

        Raises:
            aiohttp.ClientError: there is none to be had.
        """
        connection = await self._connector.connect(self._request, [], NO_TIMEOUT)
        handler = cast("BoundedHandler", connection.protocol)
        handler.lease = connection
        self._is_ready = True
        self._common.clear()
        return handler

    def head(self, headers: HeaderLines, size: int) -> bytes:
        """Return the head of a request with a body of this size; what ``headers`` names is theirs alone.

        Raises:
            ValueError: a header of the place would break out of its line.
        """
        common = self._common.get(headers.names) or self._rendered(headers.names)
        return f"{common}{headers.text}Content-Length: {size}\r\n\r\n".encode()

    def _rendered(self, names: frozenset[str]) -> str:
        """Return the lines that a request with headers of these names begins with, and keep them."""
        own = [
            f"{name}: {value}" for name, value in self._request.headers.items() if name.lower() not in names
        ]
        if len(self._common) >= COMMON_MAX:
            self._common.clear()
        common = self._common[names] = lines_of([f"POST {self._target} HTTP/1.1", *own])
        return common


class Post:
    """One request and the head of its answer; ``close`` it, whatever became of it."""

    def __init__(self) -> None:
        self.status = 0
        self.content_type = ""
        """Of the answer; empty where it has none."""
        self.headers = _NO_HEADERS
        """Of an answer that did not come whole; nobody needs those of one that did, which has status 200."""
        self.whole: bytes | None = None
        """The body, where the answer came whole."""
        self._content: StreamReader = EMPTY_PAYLOAD
        self._place: Place
        self._handler: BoundedHandler | None = None
        self._transport: asyncio.Transport | None = None

    @property
    def is_begun(self) -> bool:
        """Whether a byte of the request may have left, while it is not closed."""
        return self._transport is not None and (self._handler is None or self._handler.has_begun)

    @property
    def peer(self) -> str | None:
        """The address it was written to."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if isinstance(name, tuple) else None

    @property
    def has_all(self) -> bool:
        """Whether nothing of the body is still to come."""
        return self.whole is not None or self._content.is_eof()

    @property
    def is_over(self) -> bool:
        """Whether nothing is still to be read of a body that did not come whole."""
        return self._content.at_eof()

    def begin(
        self, place: Place, handler: BoundedHandler, headers: HeaderLines, body: bytes
    ) -> "asyncio.Future[WholeAnswer | None]":
        """Have the request written soon; the answer is awaited, and taken where it is whole, else its head is read.

        Raises:
            aiohttp.ClientError: the connection was closed before; where that shows later, what is awaited raises it.
        """
        self._place, self._handler = place, handler
        head, transport = place.head(headers, len(body)), handler.transport
        if transport is None:
            raise aiohttp.ClientConnectionResetError("the connection was closed before the request")
        self._transport = transport
        return handler.begin(head + body)

    def take(self, whole: WholeAnswer | None) -> bool:
        """Return whether this is the whole answer, after which the connection is given back."""
        handler = self._handler
        if whole is None or handler is None:
            return False
        self.status, self.content_type, self.whole = 200, whole.content_type, whole.body
        self._handler = None
        self._place.give_back(handler)
        return True

    async def read_head(self) -> None:
        """Have the head of an answer that did not come whole, on return.

        Raises:
            aiohttp.ClientError, HttpProcessingError, OSError: there is none.
        """
        handler = self._handler
        assert handler is not None  # noqa: S101 it is begun and not closed
        while True:
            message, content = await handler.read()
            if message.code == _SWITCHED or not 100 <= message.code < 200:
                break
        self.status, self.headers, self._content = message.code, message.headers, content
        self.content_type = message.headers.get("Content-Type", "")
        content.on_eof(self._release)

    async def chunk(self) -> bytes:
        """Return the next decoded bytes of the body, or none at its end.

        Raises:
            aiohttp.ClientError, OSError, RuntimeError: the connection failed or the encoding is broken.
        """
        if self.whole is not None:
            chunk, self.whole = self.whole, b""
            return chunk
        return await self._content.readany()

    def _release(self) -> None:
        """Give the connection back: the answer is whole."""
        handler = self._handler
        if handler is not None and not handler.should_close:
            self._handler = None
            handler.rest()
            self._place.give_back(handler)

    def close(self) -> None:
        """Close the connection unless it was given back; what of the request is unwritten is dropped. Idempotent."""
        handler, self._handler = self._handler, None
        if handler is None:
            return
        if handler.transport is not None and handler.transport.get_write_buffer_size():
            handler.transport.abort()
        handler.lease.close()
