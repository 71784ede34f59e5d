"""What of a request HTTP adds to its message: the headers that mirror it, and a body that knows its fate.

SPEC §connection; MCP 2026-07-28 basic/transports/streamable-http, Request Metadata.
"""

import asyncio
import select
from typing import Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from typing_extensions import override

from app.connections.wire import CLIENT_INFO
from app.core.answers import RequestNotSent
from app.core.json_value import JsonObject
from app.core.param_headers import AnnotationInvalid, encode_value
from app.core.param_headers import headers as param_headers

_NAME_MEMBER: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_HANGUP: Final = getattr(select, "POLLRDHUP", 0)
"""Linux tells of a peer that closed its side; elsewhere only a connection that is gone altogether shows."""


class RequestBody(aiohttp.Payload):
    """A request body that knows whether its request was written: aiohttp writes head and body at once."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, content_type="application/json")
        self._size = len(data)
        self._data = data
        self._transport: asyncio.WriteTransport | None = None

    @property
    def is_begun(self) -> bool:
        """Whether a byte of the request may have left."""
        return self._transport is not None

    @property
    def peer(self) -> str | None:
        """The address that the request was written to."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if isinstance(name, tuple) else None

    @override
    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the body as text."""
        return self._data.decode(encoding, errors)

    @override
    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the request unless its connection is closed already, whether or not the loop has noticed."""
        transport = writer.transport
        if transport is None or transport.is_closing() or _has_hung_up(transport):
            raise aiohttp.ClientConnectionResetError("the connection was closed before the request")
        self._transport = transport
        await writer.write(self._data)

    def drop_unwritten(self) -> None:
        """Abort the connection, still this request's own, where it holds bytes that a peer does not read."""
        if self._transport is not None and self._transport.get_write_buffer_size():
            self._transport.abort()


def request_headers(method: str, params: JsonObject, input_schema: bytes | None) -> dict[str, str]:
    """Return the headers that mirror a request's body. MCP 2026-07-28 basic/transports/streamable-http.

    Raises:
        RequestNotSent: the tool's annotations break the rules.
    """
    headers = {"Mcp-Method": method}
    name = params.get("taskId" if method.startswith("tasks/") else _NAME_MEMBER.get(method, ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
    arguments = params.get("arguments")
    if method == "tools/call" and input_schema is not None and isinstance(arguments, dict):
        try:
            headers.update(param_headers(input_schema, arguments))
        except AnnotationInvalid:
            raise RequestNotSent("the x-mcp-header annotations of its tool break the rules") from None
    return headers


def _has_hung_up(transport: asyncio.WriteTransport) -> bool:
    """Return whether the peer has closed its side, as the system knows it now."""
    descriptor = transport.get_extra_info("socket").fileno()
    if descriptor < 0:
        return True
    poll = select.poll()
    poll.register(descriptor, _HANGUP)
    return bool(poll.poll(0))


def user_agent() -> str:
    """Return our name and version as a product token. RFC 9110 §10.1.5."""
    return f"{CLIENT_INFO['name']}/{CLIENT_INFO['version']}"
