"""MCP over the standard streams of a child: one message a line, many requests at once. SPEC §connection.

MCP 2026-07-28 basic/transports/stdio, basic/patterns/cancellation, basic/patterns/progress. The process
itself is ``child_process``'s, the bytes of a message are ``wire``'s. There is no task here: what the child
writes is taken in by the loop's callbacks, and a request lives in its caller's task.

Decided here:

- A line over the limit is skipped without being kept. Its ends usually tell whose answer it was: that
  request ends with AnswerTooLarge. Where they do not, it is counted as dropped, and no request is made to
  pay for it.
- A line that is no message, but still tells which request it answers, ends that request with AnswerMalformed.
  Whose answer a message is, is ``flights``'s. An answer may stand behind noise that lacks its newline.
- A stream ends by its response, by the child's ``notifications/cancelled`` or with the child; one that the
  child has cancelled is not cancelled again.
- A request that waits for a child which does not read waits under its caller's cancellation. What never
  left the daemon is RequestNotSent, and is taken back when its caller leaves; what may have been read is
  AnswerLost.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

import structlog

from app.connections.child_environment import Program, child_environment, resolve_program, start_failure
from app.connections.child_output import DroppedLines, Masking, StderrTail
from app.connections.child_process import ChildProcess, Ending, Patience
from app.connections.classify import Peer
from app.connections.flights import Flight, Flights
from app.connections.line_splitter import LineSplitter, Oversized
from app.connections.listen_gate import CANCELLED, ListenGate, subscription_id
from app.connections.listen_gate import METHOD as LISTEN
from app.connections.progress import METHOD as PROGRESS
from app.connections.progress import ProgressGate
from app.connections.reaper import Reaper
from app.connections.subscription_filter import Filter, OnNews
from app.connections.transport import Diagnostics, Lost, OnLost, OnProgress
from app.connections.wire import (
    Malformed,
    Notification,
    PeerRequest,
    Response,
    answer_after_noise,
    decode,
    encode_cancelled,
    encode_request,
    stamp,
)
from app.core.answers import Answer, AnswerLost, AnswerMalformed, AnswerTooLarge, RequestFault, RequestNotSent
from app.core.json_value import Json, JsonObject
from app.core.references import StdioExpanded

_log = structlog.get_logger(__name__)

Trace: TypeAlias = Callable[[], Mapping[str, str]]
"""Gives the W3C trace context of the running operation."""


@dataclass(frozen=True, slots=True)
class StdioOpener:
    """Starts the same server afresh each time it is called; implements ``OpenTransport``."""

    server: str
    expanded: StdioExpanded
    environment: Mapping[str, str]
    """The daemon's, of which a child gets the few names of ``child_environment``."""
    reaper: Reaper
    mask: Masking
    capabilities: JsonObject
    """The client capabilities that every request declares."""
    max_message: int
    trace: Trace | None = None
    patience: Patience = field(default_factory=Patience)

    async def __call__(self, on_lost: OnLost) -> "StdioTransport":
        """Return the transport to a child that has just been started and asked nothing.

        Raises:
            DefinitionInvalid: a text cannot be given to a process.
            ServerUnavailable: the child cannot be started, or ended while it was.
        """
        program = resolve_program(
            self.server,
            command=self.expanded.command,
            args=self.expanded.args,
            cwd=self.expanded.cwd,
            env=child_environment(self.environment, self.expanded.env),
        )
        transport = StdioTransport(
            self.server,
            mask=self.mask,
            capabilities=self.capabilities,
            max_message=self.max_message,
            trace=self.trace,
        )
        await transport.start(program, on_lost, reaper=self.reaper, patience=self.patience)
        return transport


class StdioTransport:
    """One running child and the requests in flight to it; implements ``Transport``."""

    def __init__(
        self,
        server: str,
        *,
        mask: Masking,
        capabilities: JsonObject,
        max_message: int,
        trace: Trace | None = None,
    ) -> None:
        self.diagnostics = Diagnostics()
        """What the child sent that was ignored."""
        self._server = server
        self._mask = mask
        self._stamp = stamp(capabilities)
        self._max_message = max_message
        self._trace = trace
        self._splitter = LineSplitter(max_message)
        self._stderr = StderrTail()
        self._dropped = DroppedLines()
        self._ids = itertools.count(1)
        self._flights = Flights()
        self._child: ChildProcess | None = None
        self._on_lost: OnLost | None = None
        self._lost: Lost | None = None
        self._is_closing = False

    async def start(self, program: Program, on_lost: OnLost, *, reaper: Reaper, patience: Patience) -> None:
        """Start the child; a failed or cancelled start has left nothing behind.

        Raises:
            ServerUnavailable: it cannot be started, or ended while it was.
        """
        try:
            self._child = await ChildProcess.start(
                program,
                on_stdout=self._take,
                on_stderr=self._stderr.add,
                on_end=self._end,
                reaper=reaper,
                patience=patience,
            )
        except OSError as error:
            raise start_failure(self._server, error, program) from error
        if self._lost is not None:
            await self._child.close()
            raise Peer(self._server, "stdio").unavailable(self._lost)
        self._on_lost = on_lost

    @property
    def pid(self) -> int | None:
        """The child's process id, once it was started."""
        return self._child.pid if self._child else None

    @property
    def dropped_lines(self) -> tuple[str, ...]:
        """The masked heads of the last lines on its standard output that were no messages."""
        return self._dropped.shown(self._mask)

    def account(self, reason: str) -> Lost:
        """Return how the child ended, where it did by itself; else the reason and its stderr until now."""
        if self._lost is not None:
            return self._lost
        count = self.diagnostics.dropped_lines
        noise = f"; {count} non-JSON lines on its standard output were dropped" if count else ""
        return Lost(f"{reason}{noise}", stderr=self._stderr.text(self._mask))

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        input_schema: bytes | None = None,  # noqa: ARG002 headers mirror parameters, and stdio has none
        on_progress: OnProgress | None = None,
    ) -> Answer:
        """Return the child's answer; see ``ports.Connection.request``.

        Raises:
            RequestFault: no answer, by kind.
        """
        request_id = next(self._ids)
        gate = ProgressGate(request_id, on_progress, self.diagnostics) if on_progress else None
        token = None if on_progress is None else request_id
        return await self._settled_flight(request_id, method, params, gate, progress_token=token)

    async def listen(self, asked: Filter, on_news: OnNews) -> Answer:
        """Return the response that ended one stream; see ``Transport.listen``.

        Raises:
            RequestFault: it was lost, was never sent, or the server cancelled it.
        """
        request_id = next(self._ids)
        gate = ListenGate(request_id, asked, on_news, self.diagnostics)
        return await self._settled_flight(request_id, LISTEN, {"notifications": asked.document()}, gate)

    async def _settled_flight(
        self,
        request_id: int,
        method: str,
        params: JsonObject,
        gate: ProgressGate | ListenGate | None,
        *,
        progress_token: int | None = None,
    ) -> Answer:
        """Return the child's answer, or raise how the request ended without one."""
        line = encode_request(
            request_id,
            method,
            params,
            stamp=self._stamp,
            progress_token=progress_token,
            trace=self._trace() if self._trace else None,
        )
        child = self._open_child()
        await child.stdin.room()
        child = self._open_child()
        flight = self._flights.open(request_id, gate)
        # A child that closed its standard input is about to end: ``_end`` settles this with how it did.
        flight.written = child.stdin.write(line + b"\n")
        try:
            settled = await flight.settled
        except BaseException:
            self._abandon(request_id, flight)
            raise
        if isinstance(settled, RequestFault):
            raise settled
        return settled

    def begin_close(self) -> None:
        """Send nothing from now on: the child hears of the end when its standard input closes."""
        self._is_closing = True

    async def close(self) -> str | None:
        """Return once the child and its group are gone; the reason where they are not, else None.

        Raises nothing but cancellation, and cancelled kills the group first.
        """
        self.begin_close()
        self._settle_all("the connection was closed")
        return None if self._child is None else await self._child.close()

    def _open_child(self) -> ChildProcess:
        """Return the child while it can be asked.

        Raises:
            RequestNotSent: it ended, or the connection was closed.
        """
        if self._child is None or self._is_closing or self._lost is not None:
            raise RequestNotSent(self._lost.reason if self._lost else "the connection is closed")
        return self._child

    def _abandon(self, request_id: int, flight: Flight) -> None:
        """Drop a request whose caller left, and tell the child about it where it may know it."""
        if not self._flights.leave(request_id) or self._child is None or flight.written is None:
            return
        if not self._is_closing and not self._child.stdin.withdraw(flight.written):
            self._flights.has_cancelled = True
            self._child.stdin.write(encode_cancelled(request_id, "the caller left") + b"\n")

    def _take(self, chunk: bytes) -> None:
        """Take in what the child wrote to its standard output."""
        for line in self._splitter.feed(chunk):
            if self._is_closing or self._lost is not None:
                continue
            if isinstance(line, Oversized):
                self._take_oversized(line)
            else:
                self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        """Give one line to whom it belongs."""
        message = decode(line)
        match message:
            case Response():
                self._take_response(message)
            case Notification():
                self._take_notification(message)
            case PeerRequest():
                self.diagnostics.peer_requests += 1
            case Malformed():
                self._take_malformed(line, message)
            case _:
                assert_never(message)

    def _take_malformed(self, line: bytes, message: Malformed) -> None:
        """End the request that the line answers, as well as can be told; a line that is noise is dropped."""
        if (found := answer_after_noise(line)) is not None:
            noise, response = found
            self._drop(noise)
            self._take_response(response)
            return
        fault = AnswerMalformed(f"the answer is {message.reason}")
        if not self._flights.settle(message.id, fault):
            self._drop(line)
            self._flights.doubt(message.seems, fault)

    def _take_oversized(self, line: Oversized) -> None:
        """Settle the request whose answer was too large, where the ends of the line tell which."""
        message = decode(line.edges)
        identifier = message.id if isinstance(message, Response | Malformed) else None
        if not self._flights.settle(identifier, AnswerTooLarge(self._max_message)):
            self._drop(line.edges)

    def _take_response(self, response: Response) -> None:
        """Give a response to its request; one that is nobody's is counted."""
        if not self._flights.take(response):
            self.diagnostics.foreign_responses += 1

    def _take_notification(self, notification: Notification) -> None:
        """Pass it to the request whose progress or whose subscription it belongs to; nothing else was asked for."""
        params, is_progress = notification.params, notification.method == PROGRESS
        if is_progress:
            identifier, kind = params.get("progressToken"), ProgressGate
        elif notification.method == CANCELLED:
            identifier, kind = params.get("requestId"), ListenGate
        else:
            identifier, kind = subscription_id(notification), ListenGate
        flight = self._flights.found(identifier)
        if flight is not None and isinstance(flight.gate, kind):
            self._pass(notification, identifier, flight, flight.gate)
        elif is_progress:
            self.diagnostics.ignored_progress += 1
        else:
            self.diagnostics.ignored_notifications += 1

    def _pass(
        self, notification: Notification, identifier: Json, flight: Flight, gate: ProgressGate | ListenGate
    ) -> None:
        """Let the request's gate judge the notification, which may end the request."""
        try:
            gate.take(notification)
        except RequestFault as fault:
            self._flights.settle(identifier, fault)
        except Exception as error:  # noqa: BLE001 its caller's observer failed, so its caller hears of it
            flight.gate = None
            if not flight.settled.done():
                flight.settled.set_exception(error)

    def _drop(self, line: bytes) -> None:
        """Count a line that is no message, and keep its head; the first one is logged."""
        self.diagnostics.dropped_lines += 1
        self._dropped.add(line)
        if self.diagnostics.dropped_lines == 1:
            _log.warning("non-JSON line on stdout dropped", server=self._server, line=self.dropped_lines[0])

    def _settle_all(self, reason: str) -> None:
        """End every request in flight, each by what is known of it."""
        for request_id, flight in self._flights:
            self._flights.settle(request_id, self._fault(flight, reason))

    def _fault(self, flight: Flight, reason: str) -> RequestFault:
        """Return the fault of a request that will get no answer."""
        has_begun = flight.written is not None and flight.written.has_begun
        return AnswerLost(reason) if has_begun else RequestNotSent(reason)

    def _end(self, ending: Ending) -> None:
        """Settle everything, then say that the child has ended by itself."""
        self._take_rest()
        self._lost = Lost(
            ending.reason, ending.exit_status, ending.signal, stderr=self._stderr.text(self._mask)
        )
        self._settle_all(ending.reason)
        if self._on_lost is not None and not self._is_closing:
            self._on_lost(self._lost)

    def _take_rest(self) -> None:
        """Take a last answer that only lacks its newline; one that was cut is lost."""
        message = decode(self._splitter.rest())
        if isinstance(message, Response):
            self._take_response(message)
