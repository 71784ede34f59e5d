"""The hand-written client where the gateway stands, on its core, straight to a ``URL``. See ``blocks``."""

import sys

import anyio

from benchmarks.peers.blocks import answer_blocks
from benchmarks.targets import mcp_call, posting


async def _main(url: str) -> None:
    await answer_blocks(posting(url, mcp_call(url), expected=b"xxx"))


if __name__ == "__main__":
    anyio.run(_main, sys.argv[1], backend_options={"use_uvloop": True})
