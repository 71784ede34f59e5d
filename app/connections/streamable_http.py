"""The Streamable HTTP transport: one POST for each request, in its caller's task. SPEC §connection, §watch.

MCP 2026-07-28 basic/transports/streamable-http. The transport owns no task and no socket: between requests
there is nothing of it but its headers. Closing the response, which cancelling the caller does, cancels.

A request that a server may have executed is never sent twice. Two are none: of a pooled connection that was closed
before a byte was written nothing was sent, so the next one is taken; of a refusal (401, 403) nothing was executed, so
the request goes again, as a new one, where its authorization has something better to show. SPEC §oauth.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from types import CoroutineType
from typing import Any, Final, TypeAlias

import aiohttp
import anyio
from aiohttp.http import HttpProcessingError
from anyio.lowlevel import checkpoint
from multidict import CIMultiDict
from yarl import URL

from app.concurrency import Latch, Stop
from app.connections import wire
from app.connections.http_exchange import Place, Post
from app.connections.http_pool import HttpPool
from app.connections.http_request import HeaderLines, Remembered, request_headers, user_agent
from app.connections.http_response import (
    await_end,
    bearer_challenge,
    loss,
    media_type,
    not_sent,
    read_body,
    read_chunk,
    redirect_target,
)
from app.connections.listen_gate import METHOD as LISTEN
from app.connections.listen_gate import ListenGate
from app.connections.progress import ProgressGate
from app.connections.sse import EventStream
from app.connections.subscription_filter import Filter, OnNews
from app.connections.transport import Diagnostics, Lost, OnProgress, RequestAuthorization
from app.core.answers import (
    Answer,
    AnswerLost,
    AnswerMalformed,
    AnswerTooLarge,
    HttpRefusal,
    RemoteError,
    RequestNotSent,
    Result,
)
from app.core.json_value import JsonObject

REDIRECTS_MAX: Final = 3
FRESH_CONNECTIONS_MAX: Final = 8
"""Connections that are tried while each turns out closed before anything was written."""
REFUSAL_BODY_MAX: Final = 1024 * 1024
"""Bytes of a refusing answer that are read to find a JSON-RPC error."""
REFUSAL_BODY_S: Final = 2.0
"""Seconds the body of a refusing answer may take: its status alone has settled the request."""
STREAM_TURN: Final = 16 * 1024
"""Decoded bytes of a stream that are taken in before others have their turn."""

Trace: TypeAlias = Callable[[], Mapping[str, str]]
"""Gives the W3C trace context of the running operation."""
Authorize: TypeAlias = Callable[[], RequestAuthorization]
"""Gives each request its authorization."""

_CLOSED: Final = "the connection was closed"


@dataclass(slots=True, eq=False)
class _Exchange:
    """One request and how far it got; mutable."""

    method: str
    params: JsonObject
    input_schema: bytes | None = None
    on_progress: OnProgress | None = None
    listening: tuple[Filter, OnNews] | None = None
    """What a stream is asked for, and who hears of it."""
    id: int = 0
    gate: ProgressGate | ListenGate | None = None
    is_begun: bool = False
    """Whether a byte of it may have reached the peer."""
    peer: str | None = None
    """The address it was sent to; None behind a proxy."""


class StreamableHttpTransport:
    """One way to one MCP endpoint, with the headers of one definition."""

    def __init__(
        self,
        pool: HttpPool,
        url: URL,
        headers: Mapping[str, str],
        *,
        message_max: int,
        capabilities: JsonObject | None = None,
        trace: Trace | None = None,
        authorize: Authorize | None = None,
    ) -> None:
        """Take the expanded headers of the definition, a bearer token's ``Authorization`` among them.

        ``authorize`` gives what changes in the life of the connection.
        """
        self._pool = pool
        self._url = url
        self._message_max = message_max
        self._stamp = wire.stamp(capabilities or {})
        self._trace = trace
        self._authorize = authorize
        self._headers = CIMultiDict({"User-Agent": user_agent(), "Accept-Encoding": "gzip, deflate"})
        self._headers.update(headers)
        self._headers.update(
            {
                "Accept": "application/json, text/event-stream",
                "Content-Type": "application/json",
                "MCP-Protocol-Version": wire.REVISION,
            }
        )
        self._place: Place | None = None
        self._remembered: Remembered = {}
        self._loop = asyncio.get_running_loop()
        self._ids = count(1)
        self._in_flight: set[Stop] = set()
        self._is_closed = False
        self._settled_all = Latch()
        self._diagnostics = Diagnostics()

    @property
    def diagnostics(self) -> Diagnostics:
        """What was ignored so far."""
        return self._diagnostics

    def account(self, reason: str) -> Lost:
        """Return the reason: there is no process to tell more."""
        return Lost(reason)

    def request(
        self,
        method: str,
        params: JsonObject,
        *,
        input_schema: bytes | None = None,
        on_progress: OnProgress | None = None,
    ) -> "CoroutineType[Any, Any, Answer]":
        """Return, once awaited, the peer's answer to one POST; cancelling the caller closes it.

        Raises:
            RequestFault: no answer, by kind.
        """
        return self._settled(_Exchange(method, params, input_schema, on_progress))

    async def listen(self, asked: Filter, on_news: OnNews) -> Answer:
        """Return the response that ended one stream, which is one POST; see ``Transport.listen``.

        Raises:
            RequestFault: it was lost, was never sent, or the server cancelled it.
        """
        params: JsonObject = {"notifications": asked.document()}
        return await self._settled(_Exchange(LISTEN, params, listening=(asked, on_news)))

    def begin_close(self) -> None:
        """Send nothing from now on; a stream is ended by closing it, of which nothing is sent."""
        self._is_closed = True

    async def _settled(self, exchange: _Exchange) -> Answer:
        """Return the peer's answer, or how the request ended without one."""
        if self._is_closed:
            raise RequestNotSent(_CLOSED)
        stop = Stop(self._loop)
        self._in_flight.add(stop)
        try:
            with stop:
                if self._authorize is None:
                    return await self._exchange(exchange, None)
                return await self._authorized(exchange, self._authorize())
        finally:
            self._in_flight.discard(stop)
            if self._is_closed and not self._in_flight:
                self._settled_all.set()
        raise AnswerLost(_CLOSED) if exchange.is_begun else RequestNotSent(_CLOSED)

    async def close(self) -> str | None:
        """End every request in flight with AnswerLost and return once the last has ended."""
        self._is_closed = True
        for stop in self._in_flight:
            stop.cancel()
        if self._in_flight:
            await self._settled_all.wait()
        return None

    async def _authorized(self, exchange: _Exchange, authorization: RequestAuthorization) -> Answer:
        """Return the answer that stands; what is refused goes again, as a new request, as often as it says."""
        while True:
            answer = await self._exchange(exchange, await authorization.header())
            exchange.is_begun = not (isinstance(answer, HttpRefusal) and answer.status in {401, 403})
            standing = await authorization.judged(answer, exchange.peer)
            if standing is not None:
                return standing
            if self._is_closed:
                raise RequestNotSent(_CLOSED)

    def _written(self, exchange: _Exchange) -> bytes:
        """Return the bytes of a request that is not sent yet; its new id is its progress token too."""
        exchange.id = request_id = next(self._ids)
        if exchange.listening is not None:
            exchange.gate = ListenGate(request_id, *exchange.listening, self._diagnostics)
        else:
            exchange.gate = None
        return wire.encode_request(
            request_id,
            exchange.method,
            exchange.params,
            stamp=self._stamp,
            progress_token=request_id if exchange.on_progress is not None else None,
            trace=self._trace() if self._trace else None,
        )

    async def _exchange(self, exchange: _Exchange, authorization: str | None) -> Answer:
        """Send the request, following same-origin redirects that keep it whole, and return its answer."""
        body = self._written(exchange)
        headers = request_headers(exchange.method, exchange.params, exchange.input_schema, self._remembered)
        if authorization is not None:
            headers = headers.and_of({"Authorization": authorization})
        url = self._url
        for hop in range(REDIRECTS_MAX + 1):
            post = await self._post(self._place_of(url), exchange, headers, body)
            try:
                target = redirect_target(post, url)
                if target is None or hop == REDIRECTS_MAX:
                    return await self._answer(post, exchange)
                url = target
            finally:
                post.close()
        raise AssertionError("the last hop returns")

    def _place_of(self, url: URL) -> Place:
        """Return where requests to the URL go; the definition's own is remembered.

        Raises:
            RequestNotSent: the pool is closed.
        """
        if self._place is not None and (url is self._url or url == self._url):
            return self._place
        try:
            place = self._pool.place(url, self._headers)
        except (RuntimeError, aiohttp.ClientError) as error:
            raise not_sent(error) from None
        if url == self._url:
            self._place = place
        return place

    async def _post(self, place: Place, exchange: _Exchange, headers: HeaderLines, body: bytes) -> Post:
        """Return the head of the answer; where a connection ended before a byte was written, another one may do.

        Raises:
            RequestNotSent: nothing was written, here or where a redirect came from.
            AnswerLost: the request may have been read.
        """
        fresh = 0
        while fresh < FRESH_CONNECTIONS_MAX:
            post = Post()
            try:
                handler = place.take()
                if handler is None:
                    fresh += 1
                    handler = await place.connect()
                if not post.take(await post.begin(place, handler, headers, body)):
                    await post.read_head()
            except (aiohttp.ClientError, HttpProcessingError, OSError, RuntimeError) as error:
                is_begun = post.is_begun
                exchange.is_begun |= is_begun
                post.close()
                _require_unsent(error, is_begun=is_begun, is_redirected=exchange.is_begun)
            except BaseException:
                exchange.is_begun |= post.is_begun
                post.close()
                raise
            else:
                exchange.is_begun = True
                if self._authorize is not None and not self._pool.is_proxied:
                    exchange.peer = post.peer
                return post
        reason = "the server closes every connection at once"
        raise AnswerLost(reason) if exchange.is_begun else RequestNotSent(reason)

    async def _answer(self, response: Post, exchange: _Exchange) -> Answer:
        """Return what the response says about the request."""
        if response.status in {401, 403}:
            challenge = bearer_challenge(response)
            if challenge or response.status == 401:
                return HttpRefusal(response.status, challenge)
        kind = media_type(response)
        if not 200 <= response.status < 300:
            return await self._refusal(response, kind)
        if kind == "text/event-stream":
            return await self._stream_answer(response, exchange)
        if kind not in {"application/json", ""}:
            raise AnswerMalformed("its media type is neither application/json nor text/event-stream")
        message = wire.decode(await read_body(response, self._message_max))
        return self._settling(message, exchange) or _raise_malformed(message)

    async def _refusal(self, response: Post, kind: str) -> Answer:
        """Return the JSON-RPC error in the body of a refusing answer, whatever its id, else the status."""
        if kind in {"application/json", "text/plain", ""}:
            with anyio.move_on_after(REFUSAL_BODY_S), suppress(AnswerLost, AnswerTooLarge):
                message = wire.decode(await read_body(response, min(REFUSAL_BODY_MAX, self._message_max)))
                if isinstance(message, wire.Response) and isinstance(message.answer, RemoteError):
                    return replace(message.answer, http_status=response.status)
        return HttpRefusal(response.status)

    async def _stream_answer(self, response: Post, exchange: _Exchange) -> Answer:
        """Return the response on the stream, passing progress on; what else comes is counted."""
        stream = EventStream(limit=self._message_max)
        while chunk := await read_chunk(response):
            for start in range(0, len(chunk), STREAM_TURN):
                for event in stream.feed(chunk[start : start + STREAM_TURN]):
                    if (answer := self._settling(wire.decode(event), exchange)) is not None:
                        await await_end(response)
                        return answer
                await checkpoint()
        raise AnswerLost("the stream ended without the answer")

    def _settling(self, message: wire.Message, exchange: _Exchange) -> Result | RemoteError | None:
        """Return the answer where the message is one; else take note of it.

        Raises:
            AnswerMalformed: it answers the request in a way nobody can use, or it answers another one.
        """
        match message:
            case wire.Response(id=identifier, answer=answer):
                # wire lets no id through but text and integers, so that equality is strict.
                if identifier != exchange.id and not (identifier is None and isinstance(answer, RemoteError)):
                    raise AnswerMalformed("the id of the answer is not the request's")
                return answer
            case wire.Malformed(reason=reason, id=identifier):
                if identifier == exchange.id:
                    raise AnswerMalformed(f"the answer is {reason}")
                self._diagnostics.dropped_lines += 1
            case wire.Notification():
                if exchange.gate is None:
                    exchange.gate = ProgressGate(exchange.id, exchange.on_progress, self._diagnostics)
                exchange.gate.take(message)
            case wire.PeerRequest():
                self._diagnostics.peer_requests += 1
        return None


def _require_unsent(error: Exception, *, is_begun: bool, is_redirected: bool) -> None:
    """Require that the connection was closed before a byte was written: then another one may do.

    Raises:
        RequestNotSent: nothing was written, and nothing can be.
        AnswerLost: the request may have been read, by whoever redirected it too.
    """
    if is_begun or not isinstance(error, aiohttp.ClientConnectionResetError):
        raise (AnswerLost(loss(error)) if is_begun or is_redirected else not_sent(error)) from None


def _raise_malformed(message: wire.Message) -> Answer:
    """Refuse a JSON body that is no answer."""
    if isinstance(message, wire.Malformed):
        raise AnswerMalformed(f"the answer is {message.reason}")
    raise AnswerMalformed("the answer is a message of another kind")
