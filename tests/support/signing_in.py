"""A daemon's workspace beside an authorization server and what it protects, and a person who signs in. SPEC §oauth."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import anyio
import httpx2

from tests.support.authorization_server import REDIRECT, AuthorizationServer, authorization_server
from tests.support.browser import callback_of
from tests.support.daemon import Daemon
from tests.support.protected_server import ProtectedServer, protected_server

Json = dict[str, Any]
CLIENT_SECRET = "client-secret-of-the-journeys-4f1b"
ENVIRONMENT = {"PLURNK_HOST_EFFECT": "allow", "CLIENT_SECRET": CLIENT_SECRET}
"""What a daemon needs for these journeys: the secret of every client that is known beforehand."""
PRE_REGISTERED = {"clientId": "pre-registered", "clientSecret": "${CLIENT_SECRET}"}
MACHINE = {"type": "client-credentials", "clientId": "machine", "clientSecret": "${CLIENT_SECRET}"}
METADATA_URL = "https://client.example/metadata.json"
LIMIT = 30
"""Seconds that a whole journey may take."""


@dataclass(frozen=True)
class SigningIn:
    """One workspace, one server named ``p`` in it, and the authorization server that guards it."""

    daemon: Daemon
    workspace: str
    granting: AuthorizationServer
    server: ProtectedServer

    def definition(self, **authorization: Any) -> Json:
        """Return the definition of ``p``: interactive and registering itself, unless told otherwise."""
        return {
            "name": "p",
            "transport": "http",
            "url": self.server.url,
            "authorization": {"type": "oauth", "redirectUrl": REDIRECT, **authorization},
        }

    def machine(self, **authorization: Any) -> Json:
        """Return the definition of ``p`` that needs no person."""
        return {**self.definition(), "authorization": {**MACHINE, **authorization}}

    async def act(self, kind: str, **params: Any) -> Json:
        """Return the result or the Problem of an action."""
        return await self.daemon.act(self.workspace, f"workspace.mcp.{kind}", **params)

    async def attach(self, **authorization: Any) -> Json:
        """Return what an attach of ``p`` answers."""
        return await self.act("attach", server=self.definition(**authorization))

    async def complete(self, callback: str, name: str = "p") -> Json:
        """Return what handing a callback over answers."""
        return await self.act("oauth.complete", name=name, callbackUrl=callback)

    async def consented(self, answer: Mapping[str, Any]) -> Json:
        """Return what follows once the person agreed to the URL of a 202."""
        return await self.complete(await callback_of(answer["authorization"]["url"]))

    async def signed_in(self, **authorization: Any) -> Json:
        """Return the summary of ``p``, attached and signed in.

        Raises:
            AssertionError: it did not come to that.
        """
        done = await self.consented(await self.attach(**authorization))
        assert done.get("status") == 201, done
        return done["server"]

    async def call(self, tool: str, **arguments: Any) -> Json:
        """Return what a call of a tool of ``p`` answers."""
        return await self.act("call", server="p", tool=tool, arguments=arguments)

    async def answered(self, question: Mapping[str, Any], callback: str, **entry: Any) -> Json:
        """Return what answering a sign-in inside a call answers."""
        body = {"status": "resolved", "payload": {"callbackUrl": callback}, **entry}
        path = f"/v1/workspaces/{self.workspace}/interactions/{question['id']}"
        async with self.daemon.client() as client:
            return (await client.post(path, json=body)).json()

    async def listed(self) -> Json:
        """Return what ``workspace.mcp.list`` answers."""
        return await self.act("list")

    async def state(self) -> str:
        """Return where ``p`` stands."""
        [server] = [each for each in (await self.listed())["servers"] if each["name"] == "p"]
        return server["state"]


def the_question(answer: Mapping[str, Any]) -> Json:
    """Return the one sign-in that a call asks for."""
    [question] = answer["interrupts"]
    assert question["reason"] == "plurnk:authorization"
    return question


async def callback_for(question: Mapping[str, Any]) -> str:
    """Return the callback of a person who agrees to a sign-in inside a call."""
    return await callback_of(question["metadata"]["plurnk"]["url"])


def learn(granting: AuthorizationServer) -> None:
    """Have the clients that are known beforehand use the secret that the daemon's environment has."""
    granting.secrets.append(CLIENT_SECRET)
    for name in ("pre-registered", "machine"):
        granting.clients[name] = replace(granting.clients[name], client_secret=CLIENT_SECRET)


@asynccontextmanager
async def signing_in(daemon: Daemon, workspace: str) -> AsyncGenerator[SigningIn]:
    """Give the servers; they are gone afterwards, and what was attached to them before that."""
    async with authorization_server() as granting, protected_server(granting) as server:
        learn(granting)
        it = SigningIn(daemon, workspace, granting, server)
        try:
            yield it
        finally:
            # A stream that the daemon holds open would hold the server's end up.
            with anyio.move_on_after(5, shield=True), suppress(httpx2.TransportError):
                await it.act("detach", name="p")
