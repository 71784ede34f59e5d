"""A transport to a scripted peer, and what one call gets from it, for the tests of the HTTP transport."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from yarl import URL

from app.connections.http_pool import HttpPool
from app.connections.streamable_http import StreamableHttpTransport
from app.core.answers import Answer, Result
from app.settings import Settings
from tests.support.scripted_http import FRESH, Script, ScriptedHttp, scripted_http

OK = {**FRESH, "content": [{"type": "text", "text": "ok"}]}
LIMIT = 100_000


@asynccontextmanager
async def transport_to(
    peer: ScriptedHttp, *, headers: dict[str, str] | None = None, settings: Settings | None = None
) -> AsyncGenerator[StreamableHttpTransport]:
    """Give an open transport to the peer, within a deadline for the whole test."""
    pool = HttpPool(settings or Settings())
    transport = StreamableHttpTransport(pool, URL(peer.url), headers or {}, message_max=LIMIT)
    try:
        with anyio.fail_after(20):
            yield transport
    finally:
        await transport.close()
        await pool.close()


async def answer_to(script: Script, **arguments: Any) -> Answer:
    """Return what a tool call gets from a peer that answers it like this."""
    async with scripted_http({"tools/call": script}) as peer, transport_to(peer) as transport:
        return await transport.request("tools/call", {"name": "echo", "arguments": {}}, **arguments)


def value(answer: Answer) -> Any:
    """Return the result's value."""
    assert isinstance(answer, Result)
    return answer.value
