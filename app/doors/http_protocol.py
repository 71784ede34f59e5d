"""uvicorn's HTTP protocol with bounds on what a client may take before anybody knows who it is. SPEC §security.

uvicorn bounds neither the bytes of a request's head nor the time it takes, nor how many requests wait on a connection,
nor how long a client may leave its answers unread, so whoever reaches the port, without any token, could fill the
memory or hold every connection the process may have.
"""

import asyncio
import re
import resource
from collections.abc import Awaitable
from functools import lru_cache
from typing import Any, cast

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.doors.asgi import SENDER, WHOLE_BODY
from app.doors.gathered_transport import Clients, GatheredTransport
from app.doors.presence import KEY, Presence

HEAD_TIMEOUT_S = 30.0
"""How long a client may take to send a request's head, the first one counted from its connection."""
HEAD_MAX = 64 * 1024
"""Bytes of a head that is not whole after the first read."""
PIPELINE_MAX = 16
"""Requests that may wait on one connection for the answers before theirs."""
STRANGERS_MAX = 512
"""Connections that have shown no token, or half of the process's descriptors; beyond it the oldest goes."""
STALL_TIMEOUT_S = 60.0
"""How long a client may take nothing of what is written to it."""
AT_ONCE_MAX = 64 * 1024
"""Bytes of an answer that are put behind its head; copying more costs more than a second write."""
_HEAD = b"%b%bcontent-type: %b\r\ncontent-length: %d\r\ncache-control: no-store\r\n%b\r\n"
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class PipelineFull(Exception):
    """A client asks much without taking the answers."""


class HttpProtocol(HttpToolsProtocol):
    """One client's connection."""

    def __init__(self, *args: Any, clients: Clients | None = None, **kwargs: Any) -> None:
        """Take what uvicorn gives, and what the server's clients have in common."""
        super().__init__(*args, **kwargs)
        self._clients = Clients(self.server_state, self.loop) if clients is None else clients
        self._is_in_head = False
        self._has_read_head = False
        """Whether the head of the request ended in what is being read, so that nobody saw any of its body yet."""
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._idle_since: float | None = None
        """When the last answer ended, while there is no request."""
        self._idle_timer: asyncio.TimerHandle | None = None
        self.presence = Presence()
        self.connected_at = self.loop.time()

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] as uvicorn does
        super().connection_made(cast("asyncio.Transport", GatheredTransport(transport, self._clients)))
        self._expect_head()
        if len(self.connections) > (limit := strangers_max()):
            self._turn_a_stranger_away(limit)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_timer()
        self._forget_stall()
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        super().connection_lost(exc)
        self.presence.end()

    @override
    def data_received(self, data: bytes) -> None:
        was_in_head, self._has_read_head = self._is_in_head, False
        super().data_received(data)
        # Most heads are whole in one read and need no timer.
        if self._is_in_head and self._head_timer is None:
            self._expect_head()
        if was_in_head and self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX and not self.transport.is_closing():
                if self._is_quiet:
                    self.transport.write(_TOO_LARGE)
                self.transport.close()

    @override
    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINE_MAX:
            raise PipelineFull
        self._idle_since = None
        super().on_message_begin()
        scope: Any = self.scope
        scope[KEY] = self.presence
        self._is_in_head, self._head_bytes = True, 0

    @override
    def on_headers_complete(self) -> None:
        self._is_in_head, self._has_read_head = False, True
        if self._head_timer is not None:
            self._forget_timer()
        self._idle_since = None  # Where the answer before ended after this head had begun.
        if not self.url.startswith(b"/") and (target := _ABSOLUTE.match(self.url)):
            # What the target names is the host, whatever the header says. RFC 9112 §3.2.2
            self.headers[:] = [header for header in self.headers if header[0] != b"host"]
            self.headers.append((b"host", target[1]))
        super().on_headers_complete()
        scope: Any = self.scope
        scope[SENDER] = Sender(self.cycle)

    @override
    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._has_read_head:
            scope: Any = self.scope
            scope[WHOLE_BODY] = bytes(self.cycle.body)
        if self.flow.read_paused and not self.pipeline:
            self.flow.resume_reading()  # A large body paused it, and whether the client goes shows by reading.

    @override
    def send_400_response(self, msg: str) -> None:
        """End the connection; the answer that is being written is no place for another one."""
        if self._is_quiet or not (self.pipeline or self.cycle.response_started):
            super().send_400_response(msg)
        else:
            self.transport.close()

    @override
    def on_response_complete(self) -> None:
        """Do what uvicorn does, but leave a timer that runs: it looks again where the connection was used meanwhile.

        Only a next request prolongs the connection: the rest of a refused body, or blank lines, would keep it for ever.
        """
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._look_at_idleness)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_writing()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._forget_stall()

    @override
    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: a request that offers an upgrade is served without it. RFC 9110 §7.8."""

    @property
    def _is_quiet(self) -> bool:
        """Whether no response is being written."""
        cycle: Any = self.cycle  # None before the first request, whatever uvicorn's annotation says.
        return cycle is None or cycle.response_complete

    def _look_at_idleness(self) -> None:
        self._idle_timer = None
        if self._idle_since is None:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._look_at_idleness)
        else:
            self.transport.close()

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

    def _expect_writing(self) -> None:
        self._stall_timer = self.loop.call_later(
            STALL_TIMEOUT_S, self._look_at_writing, self.transport.get_write_buffer_size()
        )

    def _look_at_writing(self, size: int) -> None:
        if self.transport.get_write_buffer_size() < size:
            self._expect_writing()
        else:
            self.transport.abort()

    def _forget_stall(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _turn_a_stranger_away(self, limit: int) -> None:
        """Close the oldest connection that has shown no token, where there are more of them than that."""
        strangers = [
            each
            for each in cast("set[HttpProtocol]", self.connections)
            if not each.presence.is_known and not each.transport.is_closing()
        ]
        if len(strangers) > limit:
            min(strangers, key=lambda each: each.connected_at).transport.abort()


class Sender:
    """uvicorn's ``send`` of one answer, which writes a whole one at once where nothing is in the way."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def __call__(self, message: Any) -> Awaitable[None]:
        """Send one message of ASGI's."""
        return self._cycle.send(message)

    def at_once(self, status: int, media_type: bytes, body: bytes) -> bool:
        """Write what uvicorn writes for the two messages of ``send_whole``; return False where it has to see them."""
        cycle = self._cycle
        if (
            cycle.response_started
            or cycle.disconnected
            or cycle.access_log
            or cycle.flow.write_paused
            or len(body) > AT_ONCE_MAX
            or cycle.scope["method"] == "HEAD"
        ):
            return False
        head = _HEAD % (
            STATUS_LINE[status],
            _written(tuple(cycle.default_headers)),
            media_type,
            len(body),
            b"" if cycle.keep_alive else b"connection: close\r\n",
        )
        cycle.response_started, cycle.waiting_for_100_continue = True, False
        cycle.transport.write(head + body)
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True


@lru_cache(maxsize=1)
def _written(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """Return the headers of every answer; the date among them stands for a second."""
    return b"".join(b"%b: %b\r\n" % (name.lower(), value) for name, value in headers)


def strangers_max() -> int:
    """Return how many connections that have shown no token may be open at once."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return STRANGERS_MAX if descriptors == resource.RLIM_INFINITY else min(STRANGERS_MAX, descriptors // 2)
