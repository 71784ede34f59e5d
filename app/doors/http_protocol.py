"""uvicorn's HTTP protocol with bounds on what a client may send before anybody knows who it is. SPEC §security.

uvicorn bounds neither the bytes of a request's head nor the time it takes, so whoever reaches the port, without
any token, could fill the memory or hold every connection the process may have.
"""

import asyncio
import re
from typing import Any, cast

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.doors.asgi import WHOLE_BODY, Scope
from app.doors.presence import KEY, Presence

HEAD_TIMEOUT_S = 30.0
"""How long a client may take to send a request's head, the first one counted from its connection."""
HEAD_MAX = 64 * 1024
"""Bytes of a head that is not whole after the first read."""
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class HttpProtocol(HttpToolsProtocol):
    """One client's connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_in_head = False
        self._has_read_head = False
        """Whether the head of the request ended in what is being read, so that nobody saw any of its body yet."""
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._presence = Presence()

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] as uvicorn does
        super().connection_made(transport)
        self._expect_head()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        super().connection_lost(exc)
        self._presence.end()

    @override
    def data_received(self, data: bytes) -> None:
        was_in_head, self._has_read_head = self._is_in_head, False
        super().data_received(data)
        # Most heads are whole in one read and need no timer. Bytes that begin no request need one too: they have ended
        # uvicorn's, which is for connections without any.
        is_idle = self._is_quiet and self.timeout_keep_alive_task is None
        if self._head_timer is None and (self._is_in_head or is_idle):
            self._expect_head()
        if was_in_head and self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX and not self.transport.is_closing():
                if self._is_quiet:
                    self.transport.write(_TOO_LARGE)
                self.transport.close()

    @override
    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("Scope", self.scope)[KEY] = self._presence
        self._is_in_head, self._head_bytes = True, 0

    @override
    def on_headers_complete(self) -> None:
        self._is_in_head, self._has_read_head = False, True
        self._forget_timer()
        if target := _ABSOLUTE.match(self.url):
            # What the target names is the host, whatever the header says. RFC 9112 §3.2.2
            self.headers[:] = [header for header in self.headers if header[0] != b"host"]
            self.headers.append((b"host", target[1]))
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._has_read_head:
            cast("Scope", self.scope)[WHOLE_BODY] = bytes(self.cycle.body)
        if not self.pipeline:
            self.flow.resume_reading()  # A large body paused it, and whether the client goes shows by reading.

    @override
    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: a request that offers an upgrade is served without it. RFC 9110 §7.8."""

    @property
    def _is_quiet(self) -> bool:
        """Whether no response is being written."""
        cycle: Any = self.cycle  # None before the first request, whatever uvicorn's annotation says.
        return cycle is None or cycle.response_complete

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_TIMEOUT_S, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self._is_quiet:
            self.transport.close()
        else:
            self._expect_head()  # The head of a pipelined request: it may wait behind what is being answered.

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
