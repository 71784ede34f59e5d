"""fastmcp's MCP server with its in-memory OAuth provider on one loopback port: a peer that is none of our own parts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions
from starlette.types import ASGIApp

from tests.support.peer_app import peer_app

SCOPES = ["read"]


@dataclass(frozen=True)
class FastmcpOAuth:
    """The running server."""

    origin: str
    provider: InMemoryOAuthProvider

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"


@asynccontextmanager
async def fastmcp_oauth() -> AsyncGenerator[FastmcpOAuth]:
    """Run the server with one tool, ``echo``; anybody may register."""
    made: list[FastmcpOAuth] = []

    def build(origin: str) -> ASGIApp:
        provider = InMemoryOAuthProvider(
            base_url=origin,
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES
            ),
            required_scopes=SCOPES,
        )
        server: FastMCP[Any] = FastMCP("fastmcp-oauth", auth=provider)
        server.tool(_echo, name="echo")
        made.append(FastmcpOAuth(origin, provider))
        return server.http_app(path="/mcp", stateless_http=True)

    async with peer_app(build):
        yield made[0]


def _echo(text: str) -> str:
    return text
