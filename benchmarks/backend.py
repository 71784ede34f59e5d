"""The cheap backend: one process, a server of ten tools on every path, over HTTP or stdio. Counts its requests.

``python -m benchmarks.backend http DIRECTORY`` leaves a certificate in the directory, prints its port and that with
TLS, and serves until it is killed; ``… stdio`` is one server. ``/s/N`` answers with JSON, ``/wide/N`` as a server of
twenty tools, ``/public/N`` with lists that everybody may keep, ``/sse/N`` with an event stream, ``/hung/N`` never.
``GET /counts`` tells how many requests of each JSON-RPC method came, ``GET /forget`` starts the count anew.
"""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import ClassVar, cast

import orjson
import uvloop
from typing_extensions import override

from benchmarks.answers import TOOLS, WIDE, answer
from tests.support.certificates import server_tls

_HEAD_END = b"\r\n\r\n"


class Backend(asyncio.Protocol):
    """One connection; a request is answered as soon as its last byte is there."""

    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        self._pending = b""
        self._transport: asyncio.WriteTransport

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        self._pending += data
        while (end := self._pending.find(_HEAD_END)) >= 0:
            head = self._pending[:end]
            size = _content_length(head)
            start = end + len(_HEAD_END)
            if len(self._pending) < start + size:
                return
            body, self._pending = self._pending[start : start + size], self._pending[start + size :]
            self._answer(head, body)

    def _answer(self, head: bytes, body: bytes) -> None:
        verb, path, _ = head.split(b" ", 2)
        if verb != b"POST":
            self._transport.write(self._about_itself(verb, path))
            return
        message = orjson.loads(body)
        self.counts[message["method"]] += 1
        if path.startswith(b"/hung/"):
            return
        answered = answer(
            message,
            tools=WIDE if path.startswith(b"/wide/") else TOOLS,
            is_public=path.startswith(b"/public/"),
        )
        if answered is None:
            self._transport.write(_response(b"202 Accepted", b"text/plain", b""))
        elif path.startswith(b"/sse/"):
            event = b"event: message\ndata: " + answered + b"\n\n"
            self._transport.write(_response(b"200 OK", b"text/event-stream", event))
        else:
            self._transport.write(_response(b"200 OK", b"application/json", answered))

    def _about_itself(self, verb: bytes, path: bytes) -> bytes:
        if verb == b"GET" and path in {b"/counts", b"/forget"}:
            body = orjson.dumps(self.counts)
            if path == b"/forget":
                self.counts.clear()
            return _response(b"200 OK", b"application/json", body)
        return _response(b"405 Method Not Allowed", b"text/plain", b"")


def _content_length(head: bytes) -> int:
    found = head.lower().find(b"content-length:")
    return int(head[found + 15 :].split(b"\r", 1)[0]) if found >= 0 else 0


def _response(status: bytes, media_type: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        status,
        media_type,
        len(body),
        body,
    )


async def _serve(directory: Path) -> None:
    loop, (tls, _) = asyncio.get_running_loop(), server_tls(directory)
    servers = [
        await loop.create_server(Backend, "127.0.0.1", 0, backlog=1024, ssl=context)
        for context in (None, tls)
    ]
    sys.stdout.write(" ".join(str(server.sockets[0].getsockname()[1]) for server in servers) + "\n")
    sys.stdout.flush()
    await asyncio.gather(*(server.serve_forever() for server in servers))


def _stdio() -> None:
    for line in sys.stdin.buffer:
        answered = answer(orjson.loads(line))
        if answered is not None:
            sys.stdout.buffer.write(answered + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        _stdio()
    else:
        uvloop.run(_serve(Path(sys.argv[2])))
