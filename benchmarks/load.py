"""The hand-written client: sends the same bytes over kept connections. It drives every gateway, and is the floor."""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import cast
from urllib.parse import urlsplit

from typing_extensions import override

_HEAD_END = b"\r\n\r\n"
_LAST_CHUNK = b"0\r\n\r\n"
IDLE_S = 2.0
"""How long a connection is taken to be open still: servers close theirs after five seconds without a request."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a block of calls took, seen by its client."""

    seconds: float
    latencies: tuple[float, ...]
    """Of each call, in seconds, sorted."""

    @property
    def rate(self) -> float:
        """Calls a second."""
        return len(self.latencies) / self.seconds

    def at(self, quantile: float) -> float:
        """Return the latency that this share of the calls stayed below, in seconds."""
        return self.latencies[min(len(self.latencies) - 1, int(quantile * len(self.latencies)))]


Run = Callable[[int, int], Awaitable[Sample]]
"""Runs a block: how many calls at once, how many in all."""


class AnsweredWrong(Exception):
    """A peer answered with something else than success; its cost would say nothing."""


def request(url: str, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> bytes:
    """Return the bytes of one POST."""
    where = urlsplit(url)
    lines = [f"POST {where.path or '/'} HTTP/1.1", f"Host: {where.netloc}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + _HEAD_END + body


class _Closed(AnsweredWrong):
    """The connection was closed before an answer."""


class _Connection(asyncio.Protocol):
    """One kept connection with at most one request on it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._received = bytearray()
        self._answer: asyncio.Future[bytes] | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(_Closed("the connection was closed"))

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(_HEAD_END)
        if end < 0 or self._answer is None or self._answer.done():
            return
        head = bytes(self._received[:end]).lower()
        if _is_whole(head, self._received, end + len(_HEAD_END)):
            whole = bytes(self._received)
            self._received.clear()
            self._answer.set_result(whole)

    def exchange(self, data: bytes) -> "asyncio.Future[bytes]":
        if self.transport.is_closing():
            raise _Closed("the connection was closed")
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(data)
        return self._answer


def _is_whole(head: bytes, received: bytearray, start: int) -> bool:
    found = head.find(b"content-length:")
    if found >= 0:
        return len(received) - start >= int(head[found + 15 :].split(b"\r", 1)[0])
    return received.endswith(_LAST_CHUNK)


class Client:
    """Kept connections to one address."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        where = urlsplit(url)
        self._address = str(where.hostname), int(where.port or 0)
        self._tls = tls
        self._connections: list[_Connection] = []
        self._used_at = time.perf_counter()

    async def send(self, data: bytes, *, expected: bytes = b"") -> bytes:
        """Return the whole answer to one request.

        Raises:
            AnsweredWrong: its status is no success, or it does not contain what is expected.
        """
        await self._open(1)
        return _checked(await self._connections[0].exchange(data), expected)

    async def run(
        self, data: Sequence[bytes], *, in_flight: int, count: int, expected: bytes = b""
    ) -> Sample:
        """Send ``count`` requests, so many at once, and return what that took.

        Each connection repeats one of those given; they take turns.

        Raises:
            AnsweredWrong: see ``send``.
        """
        await self._open(in_flight)
        latencies: list[float] = []

        async def turns(number: int, its_data: bytes) -> None:
            for _ in range(each):
                began = time.perf_counter()
                try:
                    whole = await self._connections[number].exchange(its_data)
                except _Closed:  # it was idle for too long while others of the last block had their turns
                    self._connections[number] = await self._opened()
                    whole = await self._connections[number].exchange(its_data)
                latencies.append(time.perf_counter() - began)
                _checked(whole, expected)

        began = time.perf_counter()
        each = max(1, count // in_flight)
        try:
            await asyncio.gather(*map(turns, range(in_flight), cycle(data)))
        except BaseException:
            self.close()  # what is on its way still answers nobody
            raise
        self._used_at = time.perf_counter()
        return Sample(time.perf_counter() - began, tuple(sorted(latencies)))

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections:
            connection.transport.close()
        self._connections.clear()

    async def _open(self, number: int) -> None:
        if time.perf_counter() - self._used_at > IDLE_S:
            self.close()
        self._connections = [each for each in self._connections if not each.transport.is_closing()]
        while len(self._connections) < number:
            self._connections.append(await self._opened())
        self._used_at = time.perf_counter()

    async def _opened(self) -> _Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, *self._address, ssl=self._tls)
        return connection


def _checked(whole: bytes, expected: bytes) -> bytes:
    status = whole[9:12]
    if not status.startswith(b"2") or expected not in whole:
        raise AnsweredWrong(whole[:600].decode(errors="replace"))
    return whole


def body_of(whole: bytes) -> bytes:
    """Return the body of an answer that names its length."""
    return whole.partition(_HEAD_END)[2]
