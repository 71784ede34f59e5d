"""An HTTP peer that answers each request as a script says, byte by byte, for what no good server produces.

The default peer discovers 2026-07-28 with tools, resources and prompts and lists one tool, ``echo``.
``answers`` by JSON-RPC method, ``routes`` by path: one ``Reply``, a list of them (one a request, the last
repeats) or a function of the request. In text, ``$id`` and ``$pt`` become the JSON of the request's id and
progress token. Every request is recorded, the order of its headers too.
"""

import asyncio
import json
import socket
import ssl
import struct
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import anyio

REVISION: Final = "2026-07-28"
FRESH: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
ECHO: Final = {"name": "echo", "inputSchema": {"type": "object"}}
HANG: Final = "hang"
"""A chunk that never comes: the reply waits until the client is gone."""

PAUSE: Final = "pause"
"""A chunk that is some turns of the loop: what came before is read before what comes after is sent."""

Chunk: TypeAlias = bytes | str | float | anyio.Event
"""What is sent, the seconds to wait, or what is waited for."""
Ending: TypeAlias = Literal["keep", "close", "reset"]


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    """By lower-case name."""
    raw_headers: list[tuple[str, str]]
    body: bytes
    connection: int
    at: float = field(default_factory=time.monotonic)
    """When it was read, by the monotonic clock."""
    gone: anyio.Event = field(default_factory=anyio.Event)
    """Set once the client closed while the reply was hanging or waiting."""

    @property
    def message(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def method(self) -> str:
        return str(self.message["method"])

    @property
    def params(self) -> dict[str, Any]:
        return self.message["params"]


@dataclass(frozen=True)
class Reply:
    """One answer. ``chunks`` are sent one by one; an Event is waited for, a number are seconds of silence.

    ``raw`` replaces everything.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | str = b""
    chunks: Sequence[Chunk] | None = None
    raw: Sequence[Chunk] | None = None
    then: Ending = "keep"


Script: TypeAlias = Reply | Sequence[Reply] | Callable[[Seen], Reply]


def json_reply(value: Any, status: int = 200, **members: Any) -> Reply:
    """Return a JSON answer; ``"$id"`` as a value becomes the request's id."""
    text = json.dumps(value).replace('"$id"', "$id").replace('"$pt"', "$pt")
    headers = {"Content-Type": "application/json", **members.pop("headers", {})}
    return Reply(status, headers, text, **members)


def result(value: dict[str, Any], **members: Any) -> Reply:
    """Return a JSON-RPC result, complete and not to be kept unless the value says otherwise."""
    return json_reply({"jsonrpc": "2.0", "id": "$id", "result": {**FRESH, **value}}, **members)


def error(code: int, message: str = "no", *, status: int = 200, **members: Any) -> Reply:
    """Return a JSON-RPC error."""
    body = {"jsonrpc": "2.0", "id": "$id", "error": {"code": code, "message": message, **members}}
    return json_reply(body, status)


def text_result(text: str) -> Reply:
    """Return the result of a tool that says this."""
    return result({"content": [{"type": "text", "text": text}]})


def stream(*chunks: Chunk, **members: Any) -> Reply:
    """Return an event stream of exactly these chunks."""
    return Reply(headers={"Content-Type": "text/event-stream"}, chunks=chunks, **members)


def event(value: Any) -> str:
    """Return one event, LF line ends, ``"$id"`` as in ``json_reply``."""
    return "data: " + json.dumps(value).replace('"$id"', "$id").replace('"$pt"', "$pt") + "\n\n"


def response_event(value: dict[str, Any] | None = None) -> str:
    """Return the event that carries a result."""
    value = value or {"content": [{"type": "text", "text": "ok"}]}
    return event({"jsonrpc": "2.0", "id": "$id", "result": {**FRESH, **value}})


def progress_event(progress: Any, token: Any = "$pt", **members: Any) -> str:  # noqa: S107 a progress token
    """Return the event of one progress notification."""
    params = {"progressToken": token, "progress": progress, **members}
    return event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


def default_answers() -> dict[str, Script]:
    """Return the answers of the good peer."""
    capabilities: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
    return {
        "server/discover": result({"supportedVersions": [REVISION], "capabilities": capabilities}),
        "tools/list": result({"tools": [ECHO]}),
        "resources/list": result({"resources": []}),
        "resources/templates/list": result({"resourceTemplates": []}),
        "prompts/list": result({"prompts": []}),
        "tools/call": text_result("ok"),
    }


class ScriptedHttp:
    """The running peer."""

    def __init__(self, answers: dict[str, Script], routes: dict[str, Script]) -> None:
        self.answers = {**default_answers(), **answers}
        self.routes = routes
        self.guard: Callable[[Seen], Reply | None] = lambda _seen: None
        """What is asked before the script; None leaves a request to the script."""
        self.seen: list[Seen] = []
        self.connections = 0
        self.origin = ""
        self.idle_close = False
        """Close each connection after the reply without saying so in its head."""
        self._news = anyio.Event()
        self._counts: dict[str, int] = {}
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    @property
    def methods(self) -> list[str]:
        return [seen.method for seen in self.seen if seen.body]

    def of(self, method: str) -> list[Seen]:
        """Return the requests of one method."""
        return [seen for seen in self.seen if seen.body and seen.method == method]

    async def has_seen(self, count: int) -> None:
        """Return once so many requests have come."""
        while len(self.seen) < count:
            self._news = anyio.Event()
            await self._news.wait()

    def drop_connections(self) -> None:
        """Close every open connection, as a server does with idle ones."""
        for writer in tuple(self._writers):
            writer.close()

    def read_no_more(self) -> None:
        """Read nothing from now on from the connections that are open."""
        for writer in self._writers:
            writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue] a socket's has it

    def say_unasked(self, data: bytes) -> None:
        """Send this on every open connection."""
        for writer in self._writers:
            writer.write(data)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        number = self.connections
        self._writers.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while (seen := await self._read(reader, number)) is not None:
                self.seen.append(seen)
                self._news.set()
                if not await self._reply(seen, reader, writer):
                    break
        self._writers.discard(writer)
        writer.close()

    async def _read(self, reader: asyncio.StreamReader, number: int) -> Seen | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        lines = head.decode("utf-8", "surrogateescape").split("\r\n")[:-2]
        pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
        headers = {name.lower(): value for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Seen(lines[0].split(" ")[1], headers, pairs, body, number)

    def _script(self, seen: Seen) -> Reply:
        if (guarded := self.guard(seen)) is not None:
            return guarded
        key = seen.path if seen.path in self.routes else seen.method
        script = self.routes.get(key) or self.answers.get(key) or error(-32601, status=404)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if isinstance(script, Reply):
            return script
        return script(seen) if callable(script) else script[min(count, len(script)) - 1]

    async def _reply(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Send the reply; return whether the connection goes on."""
        reply = self._script(seen)
        if reply.raw is not None:
            await self._send_all(reply.raw, seen, reader, writer, is_chunked=False)
        else:
            await self._send_reply(reply, seen, reader, writer)
        if reply.then == "reset":
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if reply.then == "reset":
            writer.transport.abort()
        return reply.then == "keep" and not self.idle_close and not writer.is_closing()

    async def _send_reply(
        self, reply: Reply, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        is_chunked = reply.chunks is not None
        body = _filled(reply.body, seen)
        framing = {"Transfer-Encoding": "chunked"} if is_chunked else {"Content-Length": str(len(body))}
        headers = {**framing, **reply.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {reply.status} Scripted\r\n{head}\r\n".encode())
        if reply.chunks is None:
            writer.write(body)
            await writer.drain()
            return
        await self._send_all(reply.chunks, seen, reader, writer, is_chunked=True)
        if reply.then == "keep" and not writer.is_closing():
            writer.write(b"0\r\n\r\n")
            await writer.drain()

    async def _send_all(
        self,
        chunks: Sequence[Chunk],
        seen: Seen,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_chunked: bool,
    ) -> None:
        for chunk in chunks:
            if isinstance(chunk, anyio.Event):
                await _first_of(chunk, seen.gone, reader)
                if seen.gone.is_set():
                    writer.close()
                    return
            elif isinstance(chunk, int | float):
                await asyncio.sleep(chunk)
            elif chunk == PAUSE:
                for _ in range(10):
                    await asyncio.sleep(0)
            elif chunk == HANG:
                await reader.read()
                seen.gone.set()
                writer.close()
                return
            else:
                data = _filled(chunk, seen)
                writer.write(b"%x\r\n%b\r\n" % (len(data), data) if is_chunked else data)
                await writer.drain()


async def _first_of(event: anyio.Event, gone: anyio.Event, reader: asyncio.StreamReader) -> None:
    """Return once the event is set, or the client is gone, which is noted."""
    async with anyio.create_task_group() as group:

        async def notice() -> None:
            with suppress(OSError):
                if await reader.read(1):
                    return
            gone.set()
            group.cancel_scope.cancel()

        group.start_soon(notice)
        await event.wait()
        group.cancel_scope.cancel()


def _filled(text: bytes | str, seen: Seen) -> bytes:
    """Return the bytes, in text the placeholders filled in."""
    if isinstance(text, bytes):
        return text
    meta = seen.params.get("_meta", {})
    filled = text.replace("$id", json.dumps(seen.message["id"]))
    return filled.replace("$pt", json.dumps(meta.get("progressToken"))).encode("utf-8", "surrogatepass")


@asynccontextmanager
async def scripted_http(
    answers: dict[str, Script] | None = None,
    *,
    routes: dict[str, Script] | None = None,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[ScriptedHttp]:
    """Run a peer on a free loopback port; what differs from the default peer is given."""
    peer = ScriptedHttp(answers or {}, routes or {})
    server = await asyncio.start_server(peer.serve, host, 0, ssl=tls, limit=2**24)
    port = server.sockets[0].getsockname()[1]
    shown = f"[{host}]" if ":" in host else host
    peer.origin = f"{'https' if tls else 'http'}://{shown}:{port}"
    try:
        yield peer
    finally:
        server.close()
        for writer in tuple(peer._writers):
            writer.transport.abort()
        await server.wait_closed()
        await asyncio.sleep(0)
