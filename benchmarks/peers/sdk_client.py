"""The official SDK's client, called directly: ``URL`` or ``stdio COMMAND…``. See ``blocks``."""

import sys

import anyio
from mcp import Client, StdioServerParameters

from benchmarks.answers import MODERN
from benchmarks.peers.blocks import run_blocks


async def _main(where: list[str]) -> None:
    target = StdioServerParameters(command=where[1], args=where[2:]) if where[0] == "stdio" else where[0]
    async with Client(target, mode=MODERN) as client:
        await (
            client.list_tools()
        )  # as an application does, and so that results are checked against their schema
        await run_blocks(lambda: client.call_tool("tool-0", {"text": "hello"}))


if __name__ == "__main__":
    anyio.run(_main, sys.argv[1:])
