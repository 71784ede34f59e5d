"""A real MCP server on the official SDK behind bearer tokens, with metadata and challenges. RFC 6750, RFC 9728.

Its tokens come from ``authorization_server``; ``fastmcp_oauth`` is a second peer whose two halves are one.
"""

import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.support.authorization_server import AuthorizationServer
from tests.support.oauth_grants import Token
from tests.support.peer_app import peer_app

TOOLS = ("echo", "write", "admin")


class ProtectedServer:
    """The running server. Every public attribute may be changed at any time."""

    def __init__(self, origin: str, authorization: AuthorizationServer, tools: Iterable[str]) -> None:
        self.origin = origin
        self.url = f"{origin}/mcp"
        self.resource = self.url
        """What the metadata says, and what tokens must be for."""
        self.authorization = authorization
        """The authorization server whose tokens it takes and whose issuer it names."""
        self.scopes_by_tool: dict[str, str] = {}
        """The scopes, separated by spaces, that calls of a tool need."""
        self.base_scope = ""
        """What everything else needs."""
        self.tells_scope = True
        """Whether a challenge has ``scope``."""
        self.tells_metadata = True
        """Whether a challenge has ``resource_metadata``."""
        self.metadata_path = "/.well-known/oauth-protected-resource/mcp"
        self.supported_scopes: list[str] | None = None
        self.refused = 0
        """How many requests got a challenge."""
        self.bearers: list[str] = []
        """Every bearer that came, in order, the absent one as an empty text."""
        self.calls: list[str] = []
        """Every tool that was called with a good token."""
        self.capabilities: list[dict[str, Any]] = []
        """What the client declared in each message, by whomever it came."""
        self.metadata_requests: list[str] = []
        self._mcp = _server(tools)
        self._app = self._mcp.streamable_http_app(
            stateless_http=True,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve metadata to everybody and MCP to those who may."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"].startswith("/.well-known/") or scope["path"] == self.metadata_path:
            await self._metadata(scope["path"])(scope, receive, send)
        else:
            await self._guarded(scope, receive, send)

    def _metadata(self, path: str) -> Response:
        self.metadata_requests.append(path)
        if path != self.metadata_path:
            return Response(status_code=404)
        told: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": [self.authorization.issuer],
        }
        if self.supported_scopes is not None:
            told["scopes_supported"] = self.supported_scopes
        return JSONResponse(told)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        message = json.loads(body)
        name = message.get("params", {}).get("name", "") if message["method"] == "tools/call" else ""
        meta = message.get("params", {}).get("_meta", {})
        self.capabilities.append(meta.get("io.modelcontextprotocol/clientCapabilities", {}))
        needed = self.scopes_by_tool.get(name, self.base_scope)
        header = dict(scope["headers"]).get(b"authorization", b"").decode()
        token = self._token(header)
        if token is None or not set(needed.split()) <= set(token.scope.split()):
            self.refused += 1
            await self._challenge(needed, is_known=token is not None)(scope, receive, send)
            return
        if name:
            self.calls.append(name)
        await self._app(scope, _replayed(body, receive), send)

    def _token(self, header: str) -> Token | None:
        scheme, _, bearer = header.partition(" ")
        self.bearers.append(bearer)
        token = self.authorization.token_of(bearer) if scheme.lower() == "bearer" else None
        return token if token and token.resource == self.resource else None

    def _challenge(self, needed: str, *, is_known: bool) -> Response:
        error = "insufficient_scope" if is_known else "invalid_token"
        parts = [f'error="{error}"']
        if self.tells_scope and needed:
            parts.append(f'scope="{needed}"')
        if self.tells_metadata:
            parts.append(f'resource_metadata="{self.origin}{self.metadata_path}"')
        headers = {"WWW-Authenticate": "Bearer " + ", ".join(parts)}
        return JSONResponse({"error": error}, 403 if is_known else 401, headers)


def _server(tools: Iterable[str]) -> MCPServer:
    server = MCPServer("protected", version="1.0.0")
    for name in tools:
        server.add_tool(_tool(name), name=name)
    return server


def _tool(name: str) -> Any:
    def tool(text: str = "") -> str:
        return text or name

    return tool


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    return again


@asynccontextmanager
async def protected_server(
    authorization: AuthorizationServer, tools: Iterable[str] = TOOLS
) -> AsyncGenerator[ProtectedServer]:
    """Run an MCP server that takes the tokens of this authorization server."""
    made: list[ProtectedServer] = []

    def build(origin: str) -> ASGIApp:
        made.append(ProtectedServer(origin, authorization, tools))
        return made[0]

    async with peer_app(build):
        yield made[0]
