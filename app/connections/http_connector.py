"""The connections of the HTTP pool: each reads one answer after the other, and gives up a peer that does not let it.

SPEC §connection. aiohttp opens and closes them and reads whatever is not simple; see docs/decisions/0007. It queues
every head it reads, without bound, until somebody takes it; heads of status 1xx are taken and passed over for as long
as they come.
"""

import asyncio
import select
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.helpers import TimerNoop
from typing_extensions import override

from app.connections.whole_answer import WholeAnswer, WholeAnswers
from app.outbox import Outbox

HEADS_MAX: Final = 64
"""Heads of answers that may wait to be taken; one request at a time is on a connection."""
_HANGUP: Final = getattr(select, "POLLRDHUP", 0)
"""Linux tells of a peer that closed its side; elsewhere only what there is to read shows it, its end among that."""
_UNFIT: Final = select.POLLIN | _HANGUP
"""What rules out a connection that had a request before: a peer that has gone, or that says what nobody asked for."""
_NO_TIMER: Final = TimerNoop()


class BoundedHandler(ResponseHandler):
    """One connection; it is aborted where too many heads wait, and where what comes was not asked for.

    What comes is aiohttp's to read while the connection is opened (a proxy answers then), and once an answer turned out
    not to be whole in its first piece; not while there is no request.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        answers: WholeAnswers,
        asking: "set[BoundedHandler]",
        outbox: "Outbox[BoundedHandler]",
    ) -> None:
        super().__init__(loop)
        self._asking = asking
        self._outbox = outbox
        self.lease: Connection
        """What closes it; set by whoever had it opened."""
        self.idle_since = 0.0
        self._answers = answers
        self._awaited: asyncio.Future[WholeAnswer | None] | None = None
        self._is_idle = False
        self.has_begun = False
        """Whether a byte of the last request may have left."""
        self._unwritten: bytes | None = None
        """The request that is to be written still."""
        self._descriptor = -1
        self._poll: select.poll | None = None
        """Made where it is asked again; to make one costs as much as to ask."""

    @property
    def is_closed(self) -> bool:
        """Whether it is closed, or being closed, as far as the loop noticed."""
        return self.transport is None or self.transport.is_closing()

    def begin(self, request: bytes) -> "asyncio.Future[WholeAnswer | None]":
        """Have the request written with what else is written in this turn, and await its answer.

        Where it does not come whole in one piece, or not at all, None comes, and ``read`` has what there is. Where the
        peer has hung up, nothing is written and ``aiohttp.ClientConnectionResetError`` comes.
        """
        awaited: asyncio.Future[WholeAnswer | None] = self._loop.create_future()
        self._is_idle, self.has_begun, self._unwritten = False, False, request
        if self._tail:
            self._read_on_unasked(b"")
            awaited.set_result(None)
        else:
            self._awaited, self._parser = awaited, None
            self._asking.add(self)
        if len(self._asking) <= 1:
            self.write(is_fit=self._is_fit())
        else:
            self._outbox.add(self)
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
        elif not self.has_begun and self.idle_since:
            if data:
                self._refuse()
        elif data:
            self._awaited = None
            self._asking.discard(self)
            whole = self._answers.read(data) if self.has_begun and not awaited.done() else None
            if whole is not None:
                self._is_idle = True
            elif self.has_begun:
                self._read_on(data)
            else:
                self._read_on_unasked(data)
            if not awaited.done():
                awaited.set_result(whole)

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        """Have whoever awaits an answer find out."""
        super().connection_lost(exc)
        if self._unwritten is not None:
            self._refuse()
        elif (awaited := self._no_longer_awaited()) is not None:
            awaited.set_result(None)

    def is_to_write(self) -> bool:
        """Return whether there is a request that is not written, and somebody wants it still."""
        is_wanted = self._awaited is None or not self._awaited.cancelled()
        return is_wanted and self._unwritten is not None

    def ask_with(self, poll: select.poll) -> int:
        """Have the poll ask whether the open connection is unfit for a request; return its descriptor."""
        if self._descriptor < 0:
            assert self.transport is not None  # noqa: S101 it is open
            self._descriptor = self.transport.get_extra_info("socket").fileno()
        poll.register(self._descriptor, _UNFIT if self.idle_since else _HANGUP)
        return self._descriptor

    def write(self, *, is_fit: bool) -> None:
        """Write the request where the connection is fit for it."""
        if is_fit and self.transport is not None and self._unwritten is not None:
            request, self.has_begun, self._unwritten = self._unwritten, True, None
            self.transport.write(request)
        else:
            self._refuse()

    def _is_fit(self) -> bool:
        if self.is_closed:
            return False
        poll = self._poll
        if poll is None:
            poll = select.poll()
            self.ask_with(poll)
            if self.idle_since:
                self._poll = poll
        return not poll.poll(0)

    def _refuse(self) -> None:
        """Tell whoever awaits an answer that nothing was written."""
        self._unwritten = None
        if (awaited := self._no_longer_awaited()) is not None:
            awaited.set_exception(
                aiohttp.ClientConnectionResetError("the connection ended before the request")
            )

    def _no_longer_awaited(self) -> "asyncio.Future[WholeAnswer | None] | None":
        """Return what whoever awaits an answer waits for, where it still does, and await none."""
        awaited, self._awaited = self._awaited, None
        self._asking.discard(self)
        return None if awaited is None or awaited.done() else awaited

    def _read_on(self, data: bytes) -> None:
        """Have aiohttp read the answer that begins like this."""
        self.set_response_params(timer=_NO_TIMER, read_until_eof=True)
        self._take(data)

    def _read_on_unasked(self, data: bytes) -> None:
        """Have aiohttp read an answer to nothing, on a new connection: it says what kind of peer this is.

        The answer to the request comes behind it, and is no other request's.
        """
        self.force_close()
        self._read_on(data)

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


def _write_together(handlers: Sequence[BoundedHandler]) -> None:
    """Write each one's request where its connection is fit, as the system knows it now, whatever the loop noticed."""
    asked, waiting = select.poll(), dict[int, BoundedHandler]()
    for each in handlers:
        if not each.is_to_write():
            continue
        if each.is_closed:  # It may be long in closing: what was written before may never be read.
            each.write(is_fit=False)
        else:
            waiting[each.ask_with(asked)] = each
    unfit = {descriptor for descriptor, _ in asked.poll(0)}
    for descriptor, each in waiting.items():
        each.write(is_fit=descriptor not in unfit)


class BoundedConnector(aiohttp.TCPConnector):
    """Makes connections of that kind; there is no public way to name it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        loop = asyncio.get_running_loop()
        asking = set[BoundedHandler]()
        outbox = Outbox(loop, _write_together)
        self._factory = partial(
            BoundedHandler, loop=loop, answers=WholeAnswers(), asking=asking, outbox=outbox
        )
