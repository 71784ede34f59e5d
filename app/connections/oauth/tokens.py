"""Requests to a token endpoint and what they answer. SPEC §oauth; RFC 6749 §4.1.3, §4.4, §5, §6, RFC 8707 §2.

Authlib builds the requests and authenticates the client; the fetcher sends them. When a token is renewed, and by whom,
is for ``authorization``.
"""

import math
import re
import time
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote_plus

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_token_request

from app.connections.oauth.clients import BASIC, SECRET_MAX, OAuthClient
from app.connections.oauth.discovery import AuthorizationServer
from app.connections.oauth.fetch import Fetched, Fetcher
from app.core.json_value import Json, JsonObject
from app.core.oauth_errors import known_error
from app.core.oauth_problems import OAuthMetadataInvalid
from app.core.problems import ServerUnavailable
from app.core.scope_names import scope_names

ENDPOINT: Final = "the token endpoint of its authorization server"
LIFETIME_MAX_S: Final = 10 * 365 * 86_400.0

_TOKEN: Final = re.compile(rf"[\x21-\x7e]{{1,{SECRET_MAX}}}")
"""What a header can carry."""
_DIGITS: Final = re.compile(r"[0-9]{1,20}", re.ASCII)


class TokenRefusedError(Exception):
    """The authorization server gives no token, whatever it says of why."""

    def __init__(self, code: str | None) -> None:
        """Take the error code where a standard defines it."""
        super().__init__(code or "the authorization server gives no token")
        self.code = code


@dataclass(frozen=True, slots=True)
class TokenSet:
    """One grant's tokens; shows none of them, not in its ``repr`` either."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: float | None
    """When it expires, by ``time.monotonic``, counted from before it was asked for; None where that is not said."""
    scopes: tuple[str, ...]
    """What was granted: what the answer says, else what was asked for."""

    @property
    def header(self) -> str:
        """The value of the ``Authorization`` header. RFC 6750 §2.1."""
        return f"Bearer {self.access_token}"


async def exchange_code(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    *,
    code: str,
    code_verifier: str,
    redirect_url: str,
    scopes: tuple[str, ...],
) -> TokenSet:
    """Return the tokens for an authorization code; ``scopes`` are those that were asked for.

    Raises:
        TokenRefusedError: it is refused.
        OAuthMetadataInvalid: the answer has no usable token.
        ServerUnavailable: there is no answer.
    """
    parameters = {"code": code, "code_verifier": code_verifier, "redirect_uri": redirect_url}
    return await _requested(fetcher, server, client, "authorization_code", parameters, scopes=scopes)


async def refresh(
    fetcher: Fetcher, server: AuthorizationServer, client: OAuthClient, tokens: TokenSet
) -> TokenSet:
    """Return the tokens that follow; an answer without a refresh token keeps the old one. RFC 6749 §6.

    Raises:
        TokenRefusedError: it is refused.
        OAuthMetadataInvalid: the answer has no usable token.
        ServerUnavailable: there is no answer.
    """
    assert tokens.refresh_token is not None  # noqa: S101 whoever refreshes has asked
    parameters = {"refresh_token": tokens.refresh_token}
    return await _requested(
        fetcher, server, client, "refresh_token", parameters, scopes=tokens.scopes, kept=tokens.refresh_token
    )


async def client_credentials(
    fetcher: Fetcher, server: AuthorizationServer, client: OAuthClient, scopes: tuple[str, ...]
) -> TokenSet:
    """Return the tokens that the client gets for itself. RFC 6749 §4.4.

    Raises:
        TokenRefusedError: it is refused.
        OAuthMetadataInvalid: the answer has no usable token.
        ServerUnavailable: there is no answer.
    """
    parameters = {"scope": " ".join(scopes)} if scopes else {}
    return await _requested(fetcher, server, client, "client_credentials", parameters, scopes=scopes)


async def _requested(
    fetcher: Fetcher,
    server: AuthorizationServer,
    client: OAuthClient,
    grant_type: str,
    parameters: Mapping[str, str],
    *,
    scopes: tuple[str, ...],
    kept: str | None = None,
) -> TokenSet:
    asked_at = time.monotonic()
    is_basic = client.auth_method == BASIC
    # Servers on the official SDK look the client up by the body before they look at the header.
    named = {"client_id": client.client_id} if is_basic else {}
    body = prepare_token_request(grant_type, resource=server.resource, **named, **parameters)
    headers: dict[str, str] = {"Content-Type": "application/x-www-form-urlencoded"}
    method = _encode_basic if is_basic else client.auth_method
    authentication = ClientAuth(client.client_id, client.client_secret, method)
    _, headers, body = authentication.prepare("POST", server.token_endpoint, headers, body)
    fetcher.secrets.add(client.client_secret, kept)
    fetched = await fetcher.post(server.token_endpoint, ENDPOINT, body=body, headers=headers)
    document = _granted(fetcher, fetched)
    refresh_token = _refresh_token(fetcher, document)
    expires_in = _seconds(document.get("expires_in"))
    scope = document.get("scope")
    return TokenSet(
        access_token=_access_token(fetcher, document),
        refresh_token=refresh_token or kept,
        expires_at=None if expires_in is None else asked_at + expires_in,
        scopes=(scope_names(scope) if isinstance(scope, str) else ()) or scopes,
    )


def _granted(fetcher: Fetcher, fetched: Fetched) -> JsonObject:
    """Return the answer that grants something. RFC 6749 §5; some refuse with status 200."""
    if fetched.is_passing:
        raise ServerUnavailable(
            fetcher.server, "http", f"{ENDPOINT} cannot answer", http_status=fetched.status
        )
    document = fetched.document
    if not fetched.is_success or (document is not None and "error" in document):
        raise TokenRefusedError(known_error((document or {}).get("error")))
    if document is None:
        raise OAuthMetadataInvalid(fetcher.server, f"{ENDPOINT} answers what is no JSON object")
    return document


def _access_token(fetcher: Fetcher, document: JsonObject) -> str:
    token, kind = document.get("access_token"), document.get("token_type")
    if isinstance(token, str):
        fetcher.secrets.add(token)
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise OAuthMetadataInvalid(fetcher.server, f"{ENDPOINT} answers without a usable access_token")
    if not isinstance(kind, str) or kind.lower() != "bearer":
        raise OAuthMetadataInvalid(fetcher.server, f"{ENDPOINT} answers with a token that is no bearer token")
    return token


def _refresh_token(fetcher: Fetcher, document: JsonObject) -> str | None:
    token = document.get("refresh_token")
    if not isinstance(token, str):
        return None
    fetcher.secrets.add(token)
    if len(token) > SECRET_MAX:
        raise OAuthMetadataInvalid(fetcher.server, f"{ENDPOINT} answers with too long a refresh_token")
    return token


def _seconds(value: Json) -> float | None:
    """Return how long the token is good; None where that is not said in any readable way."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return min(max(float(value), 0.0), LIFETIME_MAX_S)


def _encode_basic(
    client: Any,
    method: str,  # noqa: ARG001 the shape that Authlib calls
    uri: str,
    headers: dict[str, str],
    body: str,
) -> tuple[str, dict[str, str], str]:
    """Authenticate with both halves form-encoded first, as RFC 6749 §2.3.1 has it and Authlib has not."""
    halves = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret or '')}"
    return uri, {**headers, "Authorization": f"Basic {b64encode(halves.encode()).decode()}"}, body
