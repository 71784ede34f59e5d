"""A connector whose caches run by a clock of the test, and peers whose every answer may be kept."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskGroup

from app.connections.connection_cache import Caches
from app.connections.connector import Connector
from app.connections.server_connection import ServerConnection
from app.core.answers import Result
from app.core.definitions import parse_definition
from app.core.masking import Mask
from app.ports import Target
from app.settings import Settings
from tests.support.scripted_http import (
    REVISION,
    Script,
    ScriptedHttp,
    result,
)

PUBLIC = {"ttlMs": 60_000, "cacheScope": "public"}
PRIVATE = {"ttlMs": 60_000, "cacheScope": "private"}
STALE = {"ttlMs": 0, "cacheScope": "public"}
LISTS = ["prompts/list", "resources/list", "resources/templates/list", "tools/list"]
URI = "memo://a"


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}}


def answers(control: dict[str, Any], **more: Script) -> dict[str, Script]:
    """Return the answers of a peer whose every list and resource may be kept like this."""
    capabilities: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}}
    return {
        # discover may say what it likes: it is always asked
        "server/discover": result({"supportedVersions": [REVISION], "capabilities": capabilities, **PUBLIC}),
        "tools/list": result({"tools": [tool("echo")], **control}),
        "resources/list": result({"resources": [], **control}),
        "resources/templates/list": result({"resourceTemplates": [], **control}),
        "prompts/list": result({"prompts": [], **control}),
        "resources/read": lambda seen: result(
            {"contents": [{"uri": seen.params["uri"], "text": "x"}], **control}
        ),
        **more,
    }


@dataclass
class Hand:
    """A clock that stands until it is moved."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class House:
    """A connector with a clock of ours."""

    group: TaskGroup
    environment: dict[str, str]
    hand: Hand = field(default_factory=Hand)

    def __post_init__(self) -> None:
        self.caches = Caches(clock=self.hand)
        self.connector = Connector(Settings(), self.environment, Mask(), caches=self.caches)

    async def open(
        self, peer: ScriptedHttp, workspace: str = "w", *, is_explicit: bool = False, **members: Any
    ) -> ServerConnection:
        definition = {"name": "p", "transport": "http", "url": peer.url, **members}
        return await self.open_any(definition, workspace, is_explicit=is_explicit)

    async def open_any(
        self, definition: dict[str, Any], workspace: str = "w", *, is_explicit: bool = False
    ) -> ServerConnection:
        target = Target(workspace, parse_definition(definition), "workspace", is_explicit)
        connection = await self.connector.open(target, self.group, lambda _: None)
        assert isinstance(connection, ServerConnection)
        return connection


@asynccontextmanager
async def house(environment: dict[str, str] | None = None) -> AsyncGenerator[House]:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            home = House(group, environment or {})
            try:
                yield home
            finally:
                await home.connector.close()
                group.cancel_scope.cancel()


async def text_of(connection: ServerConnection, uri: str = URI, **more: Any) -> Any:
    answer = await connection.request("resources/read", {"uri": uri, **more})
    assert isinstance(answer, Result)
    return answer.value
