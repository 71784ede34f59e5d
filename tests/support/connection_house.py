"""A connection over transports of the test's making: tables of answers, so that a loss can fall between two steps.

Real servers stand behind test_connector.py and test_stdio.py.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, cast

import anyio
import anyio.lowlevel

from app.connections.classify import Peer
from app.connections.prepare import CatalogLimits
from app.connections.recovery import Backoff
from app.connections.server_connection import ServerConnection
from app.connections.subscription_filter import Filter, OnNews
from app.connections.terms import Terms
from app.connections.transport import Diagnostics, Lost, OnLost, OnProgress
from app.core.answers import Answer, RemoteError, Result
from app.core.connection_state import ConnectionState
from app.core.json_value import JsonObject

Script = dict[str, Any]
MISMATCH = RemoteError(-32020, "headers differ", http_status=400)


def schema(header: str | None) -> JsonObject:
    area: JsonObject = {"type": "string"}
    if header is not None:
        area["x-mcp-header"] = header
    return {"type": "object", "properties": {"area": area}}


def listed(header: str | None, name: str = "t") -> Result:
    return Result({"tools": [{"name": name, "inputSchema": schema(header)}]}, 1)


Step: TypeAlias = Callable[["Way"], Awaitable[Answer]]


class Way:
    """One transport of the test's making."""

    def __init__(self, script: Script, on_lost: OnLost) -> None:
        self.script = script
        self.on_lost = on_lost
        self.requests: list[tuple[str, JsonObject, bytes | None]] = []
        self.diagnostics = Diagnostics()
        self.closed = 0
        self.close_failure: str | None = None

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        input_schema: bytes | None = None,
        on_progress: OnProgress | None = None,  # noqa: ARG002 part of the seam
    ) -> Answer:
        self.requests.append((method, params, input_schema))
        await anyio.lowlevel.checkpoint()
        answer: Any = self.script[method]
        if isinstance(answer, list):
            answer = answer.pop(0)
        if callable(answer):
            return await cast("Step", answer)(self)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def listen(self, asked: Filter, on_news: OnNews) -> Answer:
        raise AssertionError((asked, on_news))

    def account(self, reason: str) -> Lost:
        return Lost(reason, exit_status=3)

    def begin_close(self) -> None:
        pass

    async def close(self) -> str | None:
        self.closed += 1
        await anyio.lowlevel.checkpoint()
        return self.close_failure

    def lose(self) -> None:
        self.on_lost(Lost("the process ended", exit_status=9))


class House:
    """One connection and what happened to it."""

    def __init__(self, scripts: list[Script | Exception]) -> None:
        self.scripts = scripts
        self.ways: list[Way] = []
        self.news: list[tuple[ConnectionState, str | None]] = []
        self.changed = anyio.Event()
        self.connection: ServerConnection

    async def open_transport(self, on_lost: OnLost) -> Way:
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        if isinstance(script, Exception):
            raise script
        self.ways.append(Way({**good(), **script}, on_lost))
        return self.ways[-1]

    def note(self, connection: ServerConnection) -> None:
        problem = connection.problem
        # What is shown may be shown for long: it holds no frame of what failed.
        assert problem is None or problem.__traceback__ is None
        self.news.append((connection.state, problem.code if problem else None))
        self.changed.set()

    async def until(self, state: ConnectionState) -> None:
        while self.connection.state is not state:
            self.changed = anyio.Event()
            await self.changed.wait()


def good() -> Script:
    found: JsonObject = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    return {
        "server/discover": Result(found, 1),
        "tools/list": listed(None),
        "tools/call": Result({"content": []}, 1),
    }


@asynccontextmanager
async def house(
    *scripts: Script | Exception, first_delay: float = 0.0, timeout_ms: int = 5000
) -> AsyncGenerator[House]:
    home = House(list(scripts) or [{}])
    places = anyio.Semaphore(1)
    terms = Terms(
        timeout_ms, CatalogLimits(10, 1000), lambda: places, Backoff(first=first_delay, ceiling=first_delay)
    )
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            home.connection = ServerConnection(
                Peer("p", "stdio"), home.open_transport, terms, group=group, on_change=home.note
            )
            yield home
            group.cancel_scope.cancel()
