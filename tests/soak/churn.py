"""A daemon in this process to which everything happens under a new name each time, and what it holds. SPEC §limits."""

import gc
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2

from app.agui.routes import ROUTES as AGUI
from app.doors.application import build_application
from app.doors.gauges import gauges
from app.doors.streams import OpenStreams
from app.observe.exposition import Exposition
from app.rest.routes import ROUTES as REST
from app.tokens import Tokens
from tests.soak.peers import HttpPeer
from tests.support.authorization_server import REDIRECT, AuthorizationServer, authorization_server
from tests.support.daemon import TOKEN, run_input
from tests.support.loopback import served
from tests.support.protected_server import ProtectedServer, protected_server
from tests.support.workspace_house import WorkspaceHouse, workspace_house

ENVIRONMENT: Final = {"PLURNK_WORKSPACE_IDLE": "100"}
KEPT_S: Final = 0.05
LANES: Final = 6
"""How many do so at the same time."""
NOWHERE: Final = "http://127.0.0.1:1"
PROPOSED: Final = "write"
"""The tool that asks for consent."""


@dataclass(frozen=True)
class Churn:
    """The daemon, a client of it, and where its servers are."""

    house: WorkspaceHouse
    client: httpx2.AsyncClient
    url: str
    granting: AuthorizationServer
    guarded: ProtectedServer

    async def cycles(self, numbers: range) -> None:
        """Everything so many times, each under names that nothing had before; then nothing is kept of it.

        One workspace is used all the while.
        """
        async with anyio.create_task_group() as group:
            for lane in range(LANES):
                group.start_soon(self._lane, numbers[lane::LANES])
        with anyio.fail_after(20):
            while self.house.manager.count > 1 or self.house.host.boards.is_kept(self.house.workspace("w")):
                await anyio.sleep(0.02)
        # What the tests' own parts remember.
        self.house.connector.opened.clear()
        self.granting.asked.clear()
        self.granting.clients.clear()
        self.guarded.metadata_requests.clear()
        self.guarded.capabilities.clear()
        gc.collect()

    async def _lane(self, numbers: range) -> None:
        for number in numbers:
            await self._use_a_workspace(f"w-{number}")
            await self._use_a_server(f"s-{number}")
            await self._sign_in_in_vain(f"g-{number}")
            await self._be_refused(f"n-{number}")
            await self._vanish(f"v-{number}")

    async def _use_a_workspace(self, workspace: str) -> None:
        await self._done(workspace, "attach", server=self._server("web"))
        await self._done(workspace, "call", server="web", tool="echo", arguments={"text": workspace})
        await self._answered(workspace, "web", "ask", {"sure": True})
        await self._done(workspace, "detach", name="web")

    async def _use_a_server(self, server: str) -> None:
        await self._done("w", "attach", server=self._server(server))
        await self._answered("w", server, PROPOSED, {"decision": "accept"})
        asked = await self._done("w", "call", server=server, tool=PROPOSED, arguments={"text": "x"})
        await self._done("w", "cancel", operation=asked["operation"])
        for tool in ("work", "grow"):
            await self._done("w", "call", server=server, tool=tool, arguments={"text": server})
        await self._done("w", "replace", server={**self._server(server), "headers": {"X-Name": server}})
        await self._done("w", "reconnect", name=server)
        await self._done("w", "detach", name=server)
        await self._refused("w", "attach", server={**self._server(server), "url": f"{NOWHERE}/{server}"})

    async def _answered(self, workspace: str, server: str, tool: str, answer: dict[str, Any]) -> None:
        asked = await self._done(workspace, "call", server=server, tool=tool, arguments={"text": server})
        path = f"/v1/workspaces/{workspace}/interactions/{asked['interrupts'][0]['id']}"
        answered = await self.client.post(path, json={"status": "resolved", "payload": answer})
        assert answered.status_code == 200, answered.text

    async def _sign_in_in_vain(self, server: str) -> None:
        authorization = {"type": "oauth", "redirectUrl": REDIRECT}
        guarded = {**self._server(server), "url": self.guarded.url, "authorization": authorization}
        await self._done("w", "attach", server=guarded)
        callback = f"{REDIRECT}?code=c&state={server}"
        await self._refused("w", "oauth.complete", name=server, callbackUrl=callback)
        await self._done("w", "detach", name=server)

    async def _be_refused(self, name: str) -> None:
        await self._refused("w", "call", server=name, tool="echo", arguments={})
        await self._refused("w", "oauth.complete", name=name, callbackUrl=REDIRECT)
        await self._refused("w", "read", uri=f"{name}:///")
        await self._refused("w", name)
        for path, headers in (
            (f"/{name}", {}),
            (f"/v1/workspaces/{name}/operations/{name}", {}),
            ("/v1/workspaces", {"Authorization": f"Bearer {name}"}),
            ("/v1/workspaces", {"Authorization": f"Bearer plurnk.{name}.{'0' * 64}"}),
            ("/v1/workspaces", {"Origin": f"https://{name}.example"}),
            ("/v1/workspaces", {"Host": f"{name}.example"}),
        ):
            answer = await self.client.get(path, headers=headers)
            assert answer.status_code >= 400, (path, headers)

    async def _vanish(self, workspace: str) -> None:
        """A client leaves in the middle of a call."""
        await self._done(workspace, "attach", server=self._server("web"))
        action = {
            "kind": "workspace.mcp.call",
            "server": "web",
            "tool": "slow",
            "arguments": {"text": workspace},
        }
        async with self.client.stream("POST", "/", json=run_input(workspace, action)) as response:
            async for _ in response.aiter_raw():
                break
        await self._done(workspace, "list")

    def _server(self, name: str) -> dict[str, Any]:
        read = ["echo", "ask", "work", "grow", "slow"]
        return {"name": name, "transport": "http", "url": self.url, "read": read}

    async def _done(self, workspace: str, kind: str, **members: Any) -> dict[str, Any]:
        answer = await self._act(workspace, kind, members)
        assert answer.status_code < 400, answer.text
        return answer.json()

    async def _refused(self, workspace: str, kind: str, **members: Any) -> None:
        answer = await self._act(workspace, kind, members)
        assert answer.status_code >= 400, answer.text

    async def _act(self, workspace: str, kind: str, members: dict[str, Any]) -> httpx2.Response:
        body = {"kind": f"workspace.mcp.{kind}", **members}
        return await self.client.post(f"/v1/workspaces/{workspace}/actions", json=body)


@asynccontextmanager
async def churn(directory: Path) -> AsyncGenerator[Churn]:
    """Run the daemon inside the block; it forgets soon."""
    async with AsyncExitStack() as stack:
        peer = HttpPeer(directory / "carried-out")
        await peer.start()
        stack.callback(peer.kill)
        granting = await stack.enter_async_context(authorization_server())
        guarded = await stack.enter_async_context(protected_server(granting))
        house = await stack.enter_async_context(
            workspace_house(directory, environment=ENVIRONMENT, kept_s=KEPT_S)
        )
        streams = OpenStreams(limit=100)
        exposition = Exposition(house.host.telemetry.measures, gauges(house.host, streams))
        app = build_application(
            [*AGUI, *REST], host=house.host, tokens=Tokens(TOKEN), streams=streams, exposition=exposition
        )
        await stack.enter_async_context(streams.running())
        loopback = await stack.enter_async_context(served(app))
        client = await stack.enter_async_context(loopback.client(Authorization=f"Bearer {TOKEN}"))
        with house.workspace("w").in_use():
            yield Churn(house, client, peer.url, granting, guarded)


def held() -> Counter[str]:
    """Return how many objects of each type there are."""
    return Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
