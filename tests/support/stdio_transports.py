"""Stdio transports to scripted children, as tests of the transport open them. SPEC §connection."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest

from app.connections.child_process import Patience
from app.connections.reaper import Reaper
from app.connections.stdio import StdioOpener, StdioTransport
from app.connections.transport import Lost
from app.core.answers import RequestFault
from app.core.masking import Mask
from app.core.references import StdioExpanded
from tests.support.children import SCRIPTED_STDIO, text_of

QUICK = Patience(eof=0.1, term=0.1, group=0.1, silence=0.1, output=0.1)
FULL = Patience()
SECRET = "s3cret-canary-value"
OK: dict[str, Any] = {"result": {"ok": True}}


class Losses(list[Lost]):
    """Every loss that was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told = anyio.Event()

    def take(self, lost: Lost) -> None:
        self.append(lost)
        self.told.set()


def opener(
    reaper: Reaper,
    *args: str,
    command: str = sys.executable,
    cwd: str | None = None,
    env: dict[str, str] | None = None,
    max_message: int = 16 << 20,
    patience: Patience = FULL,
) -> StdioOpener:
    return StdioOpener(
        server="p",
        expanded=StdioExpanded(command, args, cwd, env or {}, frozenset({SECRET})),
        environment=os.environ,
        reaper=reaper,
        mask=Mask([SECRET]).mask,
        capabilities={},
        max_message=max_message,
        patience=patience,
    )


@asynccontextmanager
async def opened(
    reaper: Reaper, script: dict[str, Any], losses: Losses | None = None, **options: Any
) -> AsyncGenerator[StdioTransport]:
    start = opener(reaper, str(SCRIPTED_STDIO), json.dumps(script), **options)
    transport = await start((Losses() if losses is None else losses).take)
    try:
        with anyio.fail_after(30):
            yield transport
    finally:
        assert await transport.close() is None


def sent(log: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in text_of(log).split("\n") if line not in {"", "EOF"}]


async def fault(transport: StdioTransport, method: str) -> RequestFault:
    with pytest.raises(RequestFault) as caught:
        await transport.request(method, {})
    return caught.value
