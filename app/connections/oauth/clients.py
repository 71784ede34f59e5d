"""Who the daemon is at an authorization server: registered before, by its metadata document, or registered now.

SPEC §oauth; MCP 2026-07-28 basic/authorization/client-registration, RFC 7591. Nothing is kept: a client belongs to
the issuer it names, and whoever keeps it keeps it for that issuer.
"""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

import orjson

from app.connections.oauth.discovery import AuthorizationServer
from app.connections.oauth.fetch import Fetcher
from app.core.definitions import (
    ClientCredentials,
    InteractiveOAuth,
    OAuthDynamic,
    OAuthMetadataDocument,
    OAuthPreRegistered,
)
from app.core.json_value import JsonObject
from app.core.oauth_errors import known_error
from app.core.oauth_problems import OAuthClientCredentialsFailed, OAuthMetadataInvalid
from app.core.problems import ServerUnavailable
from app.core.text_rules import control_fault, is_loopback_host

BASIC: Final = "client_secret_basic"
POST: Final = "client_secret_post"
NONE: Final = "none"
CLIENT_NAME: Final = "plurnk-mcpd"
SECRET_MAX: Final = 16 * 1024
"""Characters of a client secret or a token; no common server takes a longer header."""
REGISTRATION: Final = "the registration endpoint of its authorization server"


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """A client of one authorization server."""

    issuer: str
    client_id: str
    client_secret: str | None = field(repr=False)
    auth_method: str
    """How it authenticates at the token endpoint: one of the three above."""


async def client_for(
    fetcher: Fetcher,
    server: AuthorizationServer,
    config: InteractiveOAuth | ClientCredentials,
    *,
    client_secret: str | None = None,
) -> OAuthClient:
    """Return the client that the definition has at this authorization server, registered now where it must be.

    ``client_secret`` is the definition's, expanded.

    Raises:
        OAuthMetadataInvalid: there is no way to be a client of it, or it refuses the registration.
        OAuthClientCredentialsFailed: it does not take the client's only way to authenticate.
        ServerUnavailable: it gives no answer.
    """
    match config:
        case ClientCredentials(client_id=client_id):
            if BASIC not in server.token_auth_methods:
                reason = f"its authorization server does not take {BASIC}"
                raise OAuthClientCredentialsFailed(fetcher.server, reason, client_id=client_id)
            return OAuthClient(server.issuer, client_id, client_secret, BASIC)
        case OAuthPreRegistered(client_id=client_id):
            method = _method(fetcher, server, has_secret=client_secret is not None)
            return OAuthClient(server.issuer, client_id, client_secret, method)
        case OAuthMetadataDocument(client_metadata_url=url) if server.takes_metadata_documents:
            return OAuthClient(server.issuer, url, None, NONE)
        case OAuthMetadataDocument(redirect_url=redirect_url) | OAuthDynamic(redirect_url=redirect_url):
            return await _registered(fetcher, server, redirect_url)


async def _registered(fetcher: Fetcher, server: AuthorizationServer, redirect_url: str) -> OAuthClient:
    if server.registration_endpoint is None:
        raise OAuthMetadataInvalid(
            fetcher.server,
            "its authorization server has no registration endpoint and takes no metadata document of ours; "
            "a pre-registered clientId is the way left",
        )
    fetched = await fetcher.post(
        server.registration_endpoint,
        REGISTRATION,
        body=orjson.dumps(_registration(server, redirect_url)).decode(),
        headers={"Content-Type": "application/json"},
    )
    if fetched.is_passing:
        raise ServerUnavailable(
            fetcher.server, "http", f"{REGISTRATION} cannot answer", http_status=fetched.status
        )
    document = fetched.document or {}
    secret = document.get("client_secret")
    if isinstance(secret, str):
        fetcher.secrets.add(secret)
    client_id = document.get("client_id")
    if not fetched.is_success:
        code = known_error(document.get("error"))
        raise OAuthMetadataInvalid(
            fetcher.server,
            f"{REGISTRATION} refuses the client with HTTP status {fetched.status}"
            + (f" ({code})" if code else ""),
        )
    if not isinstance(client_id, str) or not client_id or control_fault(client_id) is not None:
        raise OAuthMetadataInvalid(fetcher.server, f"{REGISTRATION} answers without a client_id")
    secret = secret if isinstance(secret, str) and secret else None
    if secret is not None and len(secret) > SECRET_MAX:
        raise OAuthMetadataInvalid(fetcher.server, f"{REGISTRATION} answers with too long a client_secret")
    return OAuthClient(
        server.issuer, client_id, secret, _registered_method(fetcher, server, document, secret)
    )


def _registration(server: AuthorizationServer, redirect_url: str) -> JsonObject:
    """Return what is registered. RFC 7591 §2; ``application_type`` of OIDC Registration 1.0 §2."""
    host = urlsplit(redirect_url).hostname or ""
    supported = server.token_auth_methods
    return {
        "client_name": CLIENT_NAME,
        "redirect_uris": [redirect_url],
        "application_type": "native" if is_loopback_host(host) else "web",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": next((each for each in (NONE, BASIC, POST) if each in supported), NONE),
    }


def _registered_method(
    fetcher: Fetcher, server: AuthorizationServer, document: JsonObject, secret: str | None
) -> str:
    """Return the method that was registered; where the answer names none, one that both sides can do."""
    method = document.get("token_endpoint_auth_method")
    if method is None:
        return _method(fetcher, server, has_secret=secret is not None)
    if method == NONE or (method in (BASIC, POST) and secret is not None):
        return str(method)
    raise OAuthMetadataInvalid(
        fetcher.server, f"{REGISTRATION} registers a client authentication that we cannot do"
    )


def _method(fetcher: Fetcher, server: AuthorizationServer, *, has_secret: bool) -> str:
    if not has_secret:
        return NONE
    for method in (BASIC, POST, NONE):
        if method in server.token_auth_methods:
            return method
    raise OAuthMetadataInvalid(
        fetcher.server, "its authorization server takes no client authentication that we can do"
    )
