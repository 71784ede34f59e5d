"""The daemon's own connection, without doors, operations and workspace: ``URL`` or ``stdio COMMAND…``. See ``blocks``.

What the wire alone costs, beside the SDK's client as one client beside another.
"""

import os
import sys
from typing import Any

import anyio

from app.connections.connector import Connector
from app.core.definitions import parse_definition
from app.core.json_value import JsonObject
from app.core.masking import Mask
from app.ports import Target
from app.settings import Settings
from benchmarks.peers.blocks import run_blocks


async def _main(where: list[str]) -> None:
    definition: dict[str, Any] = {"name": "s0", "transport": "http", "url": where[0]}
    if where[0] == "stdio":
        definition = {"name": "s0", "transport": "stdio", "command": where[1], "args": where[2:]}
    params: JsonObject = {"name": "tool-0", "arguments": {"text": "hello"}}
    connector = Connector(Settings.from_environment({}), os.environ, Mask())
    async with anyio.create_task_group() as group:
        target = Target("bench", parse_definition(definition), "workspace", is_explicit=True)
        connection = await connector.open(target, group, lambda _: None)
        await run_blocks(lambda: connection.request("tools/call", params))
        await connection.retire()
        await connector.close()
        group.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(_main, sys.argv[1:], backend_options={"use_uvloop": True})
