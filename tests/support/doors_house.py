"""Both doors on a loopback port over a real manager, boards and workspaces; the peers answer when told to."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from starlette.routing import BaseRoute

from app.actions.action import Host
from app.agui.routes import ROUTES as AGUI
from app.core.catalog import ServerCatalog
from app.doors.application import Application, build_application
from app.doors.gauges import gauges
from app.doors.streams import OpenStreams
from app.observe.exposition import Exposition
from app.rest.routes import ROUTES as REST
from app.tokens import Tokens
from tests.support.agui_events import JsonEvent, parse_stream, verify_run
from tests.support.gated_connection import GatedConnection, catalog, tool_entry
from tests.support.loopback import Loopback, served
from tests.support.operations_house import OperationsHouse, operations_house

TOKEN = "operator-token-0123456789"
DEPLOY = tool_entry("deploy", inputSchema={"type": "object", "properties": {"svc": {"type": "string"}}})
ECHO = tool_entry("echo", inputSchema={"type": "object"})
PROJECT = catalog([DEPLOY, ECHO])
DEFINITION = {"name": "project", "transport": "stdio", "command": "/peer", "read": ["echo"]}


@dataclass(frozen=True, slots=True)
class DoorsHouse:
    """What a test of the doors looks at."""

    app: Application
    house: OperationsHouse
    streams: OpenStreams
    tokens: Tokens
    loopback: Loopback

    @property
    def peer(self) -> GatedConnection:
        """The connection that was opened last."""
        return self.house.peer

    def client(self, token: str = TOKEN, **headers: str) -> httpx2.AsyncClient:
        """Return a client with this token."""
        return self.loopback.client(Authorization=f"Bearer {token}", **headers)

    async def run(
        self,
        action: Any = None,
        *,
        workspace: Any = "w",
        path: str = "/",
        verify: bool = True,
        **members: Any,
    ) -> list[JsonEvent]:
        """Return the judged events of one whole AG-UI run."""
        async with self.client() as client:
            answer = await client.post(path, json=run_input(action, workspace=workspace, **members))
        assert (answer.status_code, answer.headers["content-type"]) == (
            200,
            "text/event-stream; charset=utf-8",
        ), answer.text
        events = parse_stream(answer.content)
        return verify_run(events) if verify else events

    async def act(self, action: Any, *, workspace: str = "w", token: str = TOKEN) -> httpx2.Response:
        """Return what the REST twin answers."""
        async with self.client(token) as client:
            return await client.post(f"/v1/workspaces/{workspace}/actions", json=action)

    async def post(
        self, path: str, body: Any = None, *, method: str = "POST", token: str = TOKEN
    ) -> httpx2.Response:
        """Return the answer to one request with a JSON body, or with none."""
        async with self.client(token) as client:
            content = {} if body is None else {"json": body}
            return await client.request(method, path, **content)

    async def get(self, path: str, *, token: str = TOKEN) -> httpx2.Response:
        """Return the answer to a GET."""
        return await self.post(path, method="GET", token=token)


def run_input(action: Any = None, *, workspace: Any = "w", **members: Any) -> dict[str, Any]:
    """Return a RunAgentInput; ``members`` add to it."""
    plurnk: dict[str, Any] = {"workspace": workspace}
    if action is not None:
        plurnk["action"] = action
    base = {"threadId": "thread-1", "runId": "run-1", "protocolVersion": "1.0", "messages": []}
    return {**base, "forwardedProps": {"plurnk": plurnk}, **members}


def call(tool: str = "echo", **arguments: Any) -> dict[str, Any]:
    """Return a call of a tool of the server ``project``."""
    return {"kind": "workspace.mcp.call", "server": "project", "tool": tool, "arguments": arguments}


def text_result(text: str, **members: Any) -> dict[str, Any]:
    """Return a complete tool result of one text."""
    return {"resultType": "complete", "content": [{"type": "text", "text": text}], **members}


@asynccontextmanager
async def doors_house(
    catalogs: Mapping[str, ServerCatalog] | None = None,
    *,
    routes: Sequence[BaseRoute] = (),
    **environment: str,
) -> AsyncGenerator[DoorsHouse]:
    """Serve both doors; the server ``project`` is a service default unless ``catalogs`` says otherwise."""
    chosen = {"project": PROJECT} if catalogs is None else catalogs
    definitions = {name: {"read": ["echo"]} for name in chosen}
    async with operations_house(chosen, definitions=definitions, environment=environment) as house:
        host = Host(
            settings=house.settings,
            manager=house.manager,
            boards=house.boards,
            store=house.store,
            telemetry=house.telemetry,
        )
        streams, tokens = OpenStreams(limit=house.settings.max_streams), Tokens(TOKEN)
        exposition = Exposition(host.telemetry.measures, gauges(host, streams))
        app = build_application(
            [*AGUI, *REST, *routes], host=host, tokens=tokens, streams=streams, exposition=exposition
        )
        async with streams.running(), served(app) as loopback:
            yield DoorsHouse(app, house, streams, tokens, loopback)
