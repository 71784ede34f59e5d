"""A connector, a protected MCP server and the authorization server whose tokens that takes, real, in one process."""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from app.connections.connector import Connector
from app.connections.recovery import Backoff
from app.core.answers import Answer
from app.core.connection_state import ConnectionState
from app.core.definitions import parse_definition
from app.core.masking import Mask
from app.core.problem import Problem
from app.ports import Authorization, AuthorizationAttempt, AuthorizationDemanded, Connection, Target
from app.settings import Settings
from tests.support.authorization_server import REDIRECT, AuthorizationServer, authorization_server
from tests.support.browser import callback_of
from tests.support.peers.programs import http_definition
from tests.support.protected_server import ProtectedServer, protected_server
from tests.support.scripted_http import Reply, Script, ScriptedHttp, Seen

DYNAMIC: dict[str, Any] = {"type": "oauth", "redirectUrl": REDIRECT}
PRE_REGISTERED: dict[str, Any] = {**DYNAMIC, "clientId": "pre-registered", "clientSecret": "${SECRET}"}
MACHINE: dict[str, Any] = {"type": "client-credentials", "clientId": "machine", "clientSecret": "${SECRET}"}

CHALLENGE = Reply(401, {"WWW-Authenticate": "Bearer"})


class AuthorizedHouse:
    """Everything that takes part, and what the connections told."""

    def __init__(
        self,
        issuer: AuthorizationServer,
        server: ProtectedServer,
        connector: Connector,
        mask: Mask,
        environment: dict[str, str],
    ) -> None:
        self.issuer = issuer
        self.server = server
        self.connector = connector
        self.mask = mask
        self.environment = environment
        self.group: TaskGroup
        self.changes: list[ConnectionState] = []
        self._news = anyio.Event()

    async def open(
        self,
        config: dict[str, Any] = DYNAMIC,
        *,
        url: str = "",
        authorization: Authorization | None = None,
        is_explicit: bool = True,
    ) -> Connection:
        """Open one connection."""
        client = self.issuer.clients.get(str(config.get("clientId")))
        self.environment["SECRET"] = client.client_secret if client else "a secret of nobody"
        definition = parse_definition(http_definition("p", url or self.server.url, authorization=config))
        target = Target("w", definition, "workspace", is_explicit, authorization)
        return await self.connector.open(target, self.group, self._note)

    async def demanded(self, config: dict[str, Any] = DYNAMIC, **how: Any) -> AuthorizationAttempt:
        """Return the attempt that opening one connection asks for."""
        with pytest.raises(AuthorizationDemanded) as raised:
            await self.open(config, **how)
        assert raised.value.attempt is not None
        return raised.value.attempt

    async def refused(self, config: dict[str, Any] = DYNAMIC, **how: Any) -> Problem:
        """Return why one connection cannot be opened."""
        with pytest.raises(Problem) as raised:
            await self.open(config, **how)
        return raised.value

    async def signed_in(self, config: dict[str, Any] = DYNAMIC) -> Connection:
        """Return a connection for which a person has signed in."""
        attempt = await self.demanded(config)
        await complete(attempt)
        return await self.open(config, authorization=attempt.authorization)

    def _note(self, connection: Connection) -> None:
        self.changes.append(connection.state)
        self._news.set()

    async def has_told(self, state: ConnectionState) -> None:
        """Return once a connection told that it is in this state."""
        while state not in self.changes:
            self._news = anyio.Event()
            await self._news.wait()


async def complete(attempt: AuthorizationAttempt) -> None:
    """Sign in, as the person who was asked."""
    await attempt.complete(await callback_of(attempt.url))


async def echo(connection: Connection, text: str = "hello", *, tool: str = "echo") -> Answer:
    """Return the answer to one call."""
    return await connection.request("tools/call", {"name": tool, "arguments": {"text": text}})


def guard(peer: ScriptedHttp, issuer: AuthorizationServer) -> None:
    """Have a scripted peer, whose answers are single replies, take the tokens of this authorization server alone."""
    told = {"resource": peer.url, "authorization_servers": [issuer.issuer]}
    metadata = Reply(headers={"Content-Type": "application/json"}, body=json.dumps(told).encode())
    peer.routes["/.well-known/oauth-protected-resource/mcp"] = metadata

    def guarded(reply: Reply) -> Script:
        def answer(seen: Seen) -> Reply:
            bearer = seen.headers.get("authorization", "").removeprefix("Bearer ")
            return reply if issuer.token_of(bearer) else CHALLENGE

        return answer

    peer.answers = {
        method: guarded(script) if isinstance(script, Reply) else script
        for method, script in peer.answers.items()
    }


@asynccontextmanager
async def authorized_house(path: str = "", **settings: Any) -> AsyncGenerator[AuthorizedHouse]:
    """Run all of it, within a deadline for the whole test; ``path`` is the issuer's."""
    mask, environment = Mask(), dict[str, str]()
    backoff = Backoff(first=0.01, ceiling=0.01)
    async with AsyncExitStack() as stack:
        issuer = await stack.enter_async_context(authorization_server(path))
        server = await stack.enter_async_context(protected_server(issuer))
        connector = Connector(Settings.model_validate(settings), environment, mask, backoff=backoff)
        stack.push_async_callback(connector.close)
        home = AuthorizedHouse(issuer, server, connector, mask, environment)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as home.group:
                yield home
                home.group.cancel_scope.cancel()
