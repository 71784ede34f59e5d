"""What a ServerConnection needs of a transport, and what a transport tells it. SPEC §connection.

Two implementations: ``streamable_http`` (no task of its own) and ``stdio`` (one reader task a child).
The seam:

- a transport is open from the moment its opener returns it until ``close``;
- it numbers its own requests, stamps them through ``wire`` and settles every one of them exactly once;
- it never sends a request twice and never interprets a result;
- ``OnLost`` is called at most once, without awaiting, when the peer ended by itself: never because of
  ``close`` and after every request in flight was settled. Before the opener has returned, it raises instead.

``ServerConnection`` decides what a loss means: it states RECOVERING and, while it lives, opens another
transport with the same opener, each time after the delay that ``recovery.Backoff`` gives.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from app.connections.subscription_filter import Filter, OnNews
from app.core.answers import Answer, Progress, RequestNotSent
from app.core.json_value import JsonObject

OnProgress: TypeAlias = Callable[[Progress], None]


@dataclass(slots=True)
class Diagnostics:
    """What a peer sent that was ignored, counted; mutable, one for each transport."""

    dropped_lines: int = 0
    """Lines or events that are no JSON-RPC message."""
    foreign_responses: int = 0
    """Answers to no request of ours, late ones among them."""
    peer_requests: int = 0
    """Requests from the peer, which this revision forbids."""
    ignored_progress: int = 0
    """Progress that is late, foreign, non-increasing or malformed."""
    ignored_notifications: int = 0
    """Notifications nobody asked for."""


@dataclass(frozen=True, slots=True)
class Lost:
    """How a peer ended by itself; the facts of a ``server-unavailable``."""

    reason: str
    """Our own phrase, for example ``the process ended``; no remote text."""
    exit_status: int | None = None
    signal: str | None = None
    """The name of the signal, for example ``SIGSEGV``."""
    stderr: str | None = None
    """The masked, bounded tail of what it wrote to stderr."""


class AddressNotSent(RequestNotSent):
    """The operator's address rule refuses the server's host."""


OnLost: TypeAlias = Callable[[Lost], None]


class RequestAuthorization(Protocol):
    """What one request shows its server besides the definition's own headers. Use it for one request."""

    async def header(self) -> str | None:
        """Return the value of ``Authorization`` to send it with, None for none; waits only where that is renewed."""
        ...

    async def judged(self, answer: Answer, peer: str | None) -> Answer | None:
        """Return the answer that stands; None where the request, which was refused, is to be sent again.

        Nothing was executed of what is refused with 401 or 403. It ends: no server is asked for ever. ``peer`` is the
        address that answered, where that is known.
        """
        ...


class Transport(Protocol):
    """One open way to one server."""

    @property
    def diagnostics(self) -> Diagnostics:
        """What was ignored so far."""
        ...

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        input_schema: bytes | None = None,
        on_progress: OnProgress | None = None,
    ) -> Answer:
        """Return the peer's answer; see ``ports.Connection.request``. Only cancellation ends it early.

        Raises:
            RequestFault: no answer, by kind; AnswerLost at once when the transport is lost or closed.
        """
        ...

    async def listen(self, asked: Filter, on_news: OnNews) -> Answer:
        """Hold one ``subscriptions/listen`` stream open and return the response that ended it.

        ``on_news`` hears what ``listen_gate`` lets through. Nothing but the peer, a loss or cancellation ends it: HTTP
        closes the stream, stdio sends one ``notifications/cancelled`` unless the close has begun.

        Raises:
            RequestFault: it was lost, was never sent, or the server cancelled it.
        """
        ...

    def account(self, reason: str) -> Lost:
        """Return what is known of the peer now: how it ended, else ``reason`` and its stderr so far."""
        ...

    def begin_close(self) -> None:
        """Send nothing from now on: the peer is not told who leaves before ``close``, it hears of the end."""
        ...

    async def close(self) -> str | None:
        """Return once nothing of it is left; the reason where closing failed, else None.

        Idempotent; raises nothing but cancellation, and when cancelled goes as far as it can without waiting.
        Requests in flight end with AnswerLost; later ones with RequestNotSent.
        """
        ...


class OpenTransport(Protocol):
    """Opens a fresh transport to one fixed server; kept by a connection that can recover."""

    async def __call__(self, on_lost: OnLost) -> Transport:
        """Return an open transport whose tasks, if any, live in the connection's group.

        A failed or cancelled call has closed everything it opened.

        Raises:
            Problem: it could not be opened (ServerUnavailable and the facts, TooMany).
        """
        ...
