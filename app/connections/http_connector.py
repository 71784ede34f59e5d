"""The connections of the HTTP pool: each reads one answer after the other, and gives up a peer that does not let it.

SPEC §connection. aiohttp opens and closes them and reads whatever is not simple; see docs/decisions/0007. It queues
every head it reads, without bound, until somebody takes it; heads of status 1xx are taken and passed over for as long
as they come.
"""

import asyncio
import select
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.helpers import TimerNoop
from typing_extensions import override

from app.connections.whole_answer import WholeAnswer, WholeAnswers

HEADS_MAX: Final = 64
"""Heads of answers that may wait to be taken; one request at a time is on a connection."""
_HANGUP: Final = getattr(select, "POLLRDHUP", 0)
"""Linux tells of a peer that closed its side; elsewhere only a connection that is gone altogether shows."""
_NO_TIMER: Final = TimerNoop()


class BoundedHandler(ResponseHandler):
    """One connection; it is aborted where too many heads wait, and where what comes was not asked for.

    What comes is aiohttp's to read while the connection is opened (a proxy answers then), and once an answer turned out
    not to be whole in its first piece; not while there is no request.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, answers: WholeAnswers) -> None:
        super().__init__(loop)
        self.lease: Connection
        """What closes it; set by whoever had it opened."""
        self.idle_since = 0.0
        self._answers = answers
        self._awaited: asyncio.Future[WholeAnswer | None] | None = None
        self._is_idle = False
        self._hangup: select.poll | None = None

    def has_hung_up(self) -> bool:
        """Return whether the peer has closed its side, as the system knows it now, whether or not the loop noticed."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return True
        if self._hangup is None:
            self._hangup = select.poll()
            self._hangup.register(transport.get_extra_info("socket").fileno(), _HANGUP)
        return bool(self._hangup.poll(0))

    def begin(self) -> "asyncio.Future[WholeAnswer | None]":
        """Await the answer to a request that is about to be written.

        Where it does not come whole in one piece, or not at all, None comes, and ``read`` has what there is.
        """
        awaited: asyncio.Future[WholeAnswer | None] = self._loop.create_future()
        self._is_idle = False
        if self._tail:  # An answer to nothing; it says what kind of peer this is.
            self._read_on(b"")
            awaited.set_result(None)
        else:
            self._awaited, self._parser = awaited, None
        return awaited

    def rest(self) -> None:
        """Take nothing from now on: the answer is read, and there is no request."""
        self._is_idle = True

    @override
    def data_received(self, data: bytes) -> None:
        """Take in what the peer sent."""
        awaited = self._awaited
        if awaited is None:
            self._take(data)
        elif data:
            self._awaited = None
            whole = None if awaited.done() else self._answers.read(data)
            if whole is None:
                self._read_on(data)
            else:
                self._is_idle = True
            if not awaited.done():
                awaited.set_result(whole)

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        """Have whoever awaits an answer find out."""
        super().connection_lost(exc)
        awaited, self._awaited = self._awaited, None
        if awaited is not None and not awaited.done():
            awaited.set_result(None)

    def _read_on(self, data: bytes) -> None:
        """Have aiohttp read the answer that begins like this."""
        self.set_response_params(timer=_NO_TIMER, read_until_eof=True)
        self._take(data)

    def _take(self, data: bytes) -> None:
        if not self._is_idle:
            super().data_received(data)
            # The answer may have ended just now, and more have come with its end.
            if len(self._buffer) <= (0 if self._is_idle else HEADS_MAX):
                return
        elif not data:  # aiohttp resumes a body that was read
            return
        if self.transport is not None:
            self.transport.abort()


class BoundedConnector(aiohttp.TCPConnector):
    """Makes connections of that kind; there is no public way to name it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._factory = partial(BoundedHandler, loop=asyncio.get_running_loop(), answers=WholeAnswers())
