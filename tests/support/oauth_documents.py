"""A protected server and its authorization server as documents at paths: good ones, and what a test changes of them.

Everything else is 404. For what no good authorization server says; the good one is real.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from copy import copy
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from typing_extensions import override
from yarl import URL

from app.connections.oauth.discovery import AuthorizationServer
from app.connections.oauth.fetch import Fetcher, Fetching, Resolve, system_addresses
from app.core.definitions import ClientCredentials, OAuthDynamic, OAuthPreRegistered
from app.core.masking import Mask
from app.settings import Settings
from tests.support.scripted_http import Reply, Script, ScriptedHttp, Seen, scripted_http

PRM = "/.well-known/oauth-protected-resource"
METADATA = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
PERSON = OAuthDynamic.model_validate({"type": "oauth", "redirectUrl": "http://localhost:7777/cb"})


def machine(**members: object) -> ClientCredentials:
    """Return the authorization of a machine with client id ``c``."""
    return ClientCredentials.model_validate(
        {"type": "client-credentials", "clientId": "c", "clientSecret": "${S}", **members}
    )


def registered(**members: object) -> OAuthPreRegistered:
    """Return the authorization of a person through the client ``c`` that was registered before."""
    given = {"type": "oauth", "redirectUrl": PERSON.redirect_url, "clientId": "c", "clientSecret": "${S}"}
    return OAuthPreRegistered.model_validate({**given, **members})


def document(value: object, status: int = 200, **headers: str) -> Reply:
    """Return an answer that is this JSON value."""
    return Reply(status, {"Content-Type": "application/json", **headers}, json.dumps(value).encode())


class Documents(dict[str, Script]):
    """Routes by path; every path is one."""

    @override
    def __contains__(self, path: object) -> bool:
        return True

    @override
    def get(self, path: str, default: Any = None) -> Any:
        return super().get(path, default or Reply(404))


def metadata(origin: str, issuer: str, **changed: object) -> dict[str, object]:
    """Return the metadata of a good authorization server; a change to None leaves a member out."""
    members = {
        "issuer": issuer,
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/token",
        "registration_endpoint": f"{origin}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["plain", "S256"],
        **changed,
    }
    return {name: value for name, value in members.items() if value is not None}


@asynccontextmanager
async def documents(**options: Any) -> AsyncGenerator[ScriptedHttp]:
    """Run a peer with a protected resource at ``/mcp`` whose authorization server is the peer itself."""
    async with scripted_http(**options) as peer:
        peer.routes = Documents()
        origin = peer.origin
        peer.routes[f"{PRM}/mcp"] = document({"resource": peer.url, "authorization_servers": [origin]})
        peer.routes[METADATA] = document(metadata(origin, origin))
        yield peer


@cache
def default_terms() -> Fetching:
    """Return the terms of a daemon whose operator set nothing; reading the roots takes long."""
    return Fetching(Settings(), Mask())


def fetcher(
    url: str, *, resolve: Resolve = system_addresses, mask: Mask | None = None, **settings: object
) -> Fetcher:
    """Return the fetcher of server ``p`` at this URL."""
    if settings:
        terms = Fetching(Settings.model_validate(settings), mask or Mask(), resolve=resolve)
    else:
        terms = copy(default_terms())
        terms.resolve, terms.mask = resolve, mask or Mask()
    return terms.of("p", URL(url))


def paths(peer: ScriptedHttp) -> list[str]:
    """Return what was asked for, in order."""
    return [seen.path for seen in peer.seen]


def form(seen: Seen) -> list[tuple[str, str]]:
    """Return the parameters of a form, in order."""
    return parse_qsl(seen.body.decode(), keep_blank_values=True, strict_parsing=True)


def authorization_server(origin: str, **changed: Any) -> AuthorizationServer:
    """Return a discovered authorization server with its endpoints at this origin."""
    members: dict[str, Any] = {
        "resource": f"{origin}/mcp",
        "issuer": origin,
        "authorization_endpoint": f"{origin}/authorize",
        "token_endpoint": f"{origin}/token",
        "registration_endpoint": f"{origin}/register",
        "resource_scopes": (),
        "scopes_supported": (),
        "is_iss_sent": False,
        "takes_metadata_documents": False,
        "token_auth_methods": ("client_secret_basic",),
        **changed,
    }
    return AuthorizationServer(**members)
