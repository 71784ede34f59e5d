"""A transport whose requests are counted, timed and traced; all else is the transport's own. SPEC §observe.

A stream that listens is no such request: it lasts as long as its server lets it.
"""

import time
from dataclasses import dataclass
from typing import assert_never

from app.connections.classify import Peer
from app.connections.subscription_filter import Filter, OnNews
from app.connections.transport import Diagnostics, Lost, OnLost, OnProgress, OpenTransport, Transport
from app.core.answers import (
    Answer,
    AnswerLost,
    AnswerMalformed,
    AnswerTooLarge,
    HttpRefusal,
    RemoteError,
    RequestFault,
    RequestNotSent,
    Result,
)
from app.core.json_value import JsonObject
from app.core.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class MeasuredOpener:
    """Opens what another opener opens, measured; implements ``OpenTransport``."""

    open_transport: OpenTransport
    peer: Peer
    telemetry: Telemetry

    async def __call__(self, on_lost: OnLost) -> "MeasuredTransport":
        """Return the open transport.

        Raises:
            Problem: as the opener does.
        """
        return MeasuredTransport(await self.open_transport(on_lost), self.peer, self.telemetry)


class MeasuredTransport:
    """Implements ``Transport`` around another one."""

    def __init__(self, transport: Transport, peer: Peer, telemetry: Telemetry) -> None:
        self._transport = transport
        self._peer = peer
        self._telemetry = telemetry

    @property
    def diagnostics(self) -> Diagnostics:
        """What was ignored so far."""
        return self._transport.diagnostics

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        input_schema: bytes | None = None,
        on_progress: OnProgress | None = None,
    ) -> Answer:
        """Return the peer's answer; see ``Transport.request``.

        Raises:
            RequestFault: no answer, by kind.
        """
        telemetry, transport = self._telemetry, self._peer.transport
        began, outcome = time.perf_counter(), "cancelled"
        span = telemetry.tracer.begin(
            method, "client", {"mcp.method.name": method, "plurnk.server": self._peer.server}
        )
        try:
            work = self._transport.request(method, params, input_schema=input_schema, on_progress=on_progress)
            answer = await (work if span is None else span.around(work))
        except RequestFault as fault:
            outcome = _fault_word(fault)
            raise
        except Exception:
            outcome = "internal"
            raise
        else:
            outcome = _answer_word(answer)
            return answer
        finally:
            telemetry.measures.requests.add(transport, outcome)
            telemetry.measures.request_seconds.add(time.perf_counter() - began, transport)
            if span is not None:
                span.end(outcome)

    async def listen(self, asked: Filter, on_news: OnNews) -> Answer:
        """Return the response that ended one stream; see ``Transport.listen``.

        Raises:
            RequestFault: it was lost, was never sent, or the server cancelled it.
        """
        return await self._transport.listen(asked, on_news)

    def account(self, reason: str) -> Lost:
        """Return what is known of the peer now."""
        return self._transport.account(reason)

    def begin_close(self) -> None:
        """Send nothing from now on."""
        self._transport.begin_close()

    async def close(self) -> str | None:
        """Return once nothing of it is left; the reason where closing failed, else None."""
        return await self._transport.close()


def _answer_word(answer: Answer) -> str:
    match answer:
        case Result():
            return "answered"
        case RemoteError():
            return "error"
        case HttpRefusal():
            return "refused"
        case _:
            assert_never(answer)


def _fault_word(fault: RequestFault) -> str:
    match fault:
        case RequestNotSent():
            return "not-sent"
        case AnswerLost():
            return "lost"
        case AnswerMalformed():
            return "malformed"
        case AnswerTooLarge():
            return "too-large"
        case _:
            return "failed"
