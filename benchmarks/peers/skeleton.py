"""The least that the chosen libraries can do for one REST call: ``PORT URL``. What the daemon's bounds are held to.

uvicorn, orjson and aiohttp as the daemon uses them, a validated argument, and nothing else: no gate, no token, no
workspace, no operation, no log.
"""

import sys
from typing import Any

import aiohttp
import anyio
import jsonschema_rs
import orjson
import uvicorn

from benchmarks.answers import MODERN

_HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": MODERN,
    "Mcp-Method": "tools/call",
    "Mcp-Name": "tool-0",
}
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "skeleton", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_VALIDATOR = jsonschema_rs.validator_for({"type": "object", "required": ["text"]})


async def _main(port: int, url: str) -> None:
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:

        async def application(_scope: Any, receive: Any, send: Any) -> None:
            asked = orjson.loads((await receive())["body"])
            assert _VALIDATOR.is_valid(asked["arguments"])
            params = {"name": asked["tool"], "arguments": asked["arguments"], "_meta": _META}
            data = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            async with session.post(url, data=data, headers=_HEADERS) as response:
                answered = orjson.loads(await response.read())
            body = orjson.dumps({"status": 200, **answered["result"]})
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        config = uvicorn.Config(application, port=port, lifespan="off", access_log=False, log_level="error")
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    anyio.run(_main, int(sys.argv[1]), sys.argv[2], backend_options={"use_uvloop": True})
