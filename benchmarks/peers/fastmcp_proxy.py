"""FastMCP as a proxy of N servers with one kept client each, over Streamable HTTP: ``PORT URL…``."""

import logging
import sys
from contextlib import AsyncExitStack

import anyio
from fastmcp import Client, FastMCP
from fastmcp.server.providers.proxy import FastMCPProxy


async def _main(port: int, urls: list[str]) -> None:
    logging.disable(logging.INFO)
    front: FastMCP = FastMCP("front")
    async with AsyncExitStack() as stack:
        for number, url in enumerate(urls):
            client = await stack.enter_async_context(Client(url))
            front.mount(FastMCPProxy(client_factory=lambda kept=client: kept), namespace=f"s{number}")
        await front.run_http_async(
            show_banner=False,
            transport="http",
            host="127.0.0.1",
            port=port,
            path="/mcp",
            json_response=True,
            stateless_http=True,
            log_level="error",
        )


if __name__ == "__main__":
    anyio.run(_main, int(sys.argv[1]), sys.argv[2:])
