"""A real authorization server on a loopback port, on Authlib's server side, with switches and a count of everything.

Codes with S256, refresh with rotation, client credentials, registration, metadata, ``iss`` and ``resource``: RFC 6749,
7591, 7636, 8414, 8707, 9207. What it protects is ``protected_server``; what only a liar says is ``scripted_http``.
"""

# pyright: reportIncompatibleMethodOverride=false
# Authlib guesses types of its own seams from bodies that only raise.

import itertools
import secrets
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
from authlib.oauth2.rfc6749 import AuthorizationServer as Server
from authlib.oauth2.rfc6749 import OAuth2Error
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc9207 import IssuerParameter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import override

from tests.support.oauth_grants import (
    METHODS,
    Answer,
    BodyRequest,
    Challenged,
    Client,
    Code,
    CodeGrant,
    FormRequest,
    MachineGrant,
    Registration,
    RotatingRefreshGrant,
    Token,
)
from tests.support.peer_app import peer_app

REDIRECT = "http://127.0.0.1:7777/callback"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    endpoint: str
    """``metadata``, ``authorize``, ``token`` or ``register``."""
    parameters: Mapping[str, Any]
    """The query, the form or the JSON body."""
    headers: Mapping[str, str]

    @property
    def names(self) -> set[str]:
        """The names it is counted under: ``token`` and ``token:refresh_token``."""
        return {self.endpoint, f"{self.endpoint}:{self.parameters.get('grant_type')}"}


class _Issuer(IssuerParameter):
    def __init__(self, server: "AuthorizationServer") -> None:
        self._server = server

    @override
    def get_issuer(self) -> str | None:
        return self._server.issuer if self._server.tells_issuer else None


class AuthorizationServer(Server):
    """The running authorization server. Every public attribute may be changed at any time.

    Two clients are known from the start: ``pre-registered`` for people and ``machine`` for client credentials.
    """

    def __init__(self, issuer: str) -> None:
        super().__init__()
        self.issuer = issuer
        self.token_lifetime = 3600.0
        """Seconds; not whole ones are rounded down in ``expires_in`` and kept to the letter."""
        self.tells_lifetime = True
        self.rotates = True
        self.issues_refresh_tokens = True
        self.tells_issuer = True
        """RFC 9207: says so in the metadata and sends ``iss``."""
        self.registers = True
        """RFC 7591, open to whoever asks."""
        self.takes_metadata_documents = False
        """An https client id is a public client; its document is not fetched, every redirect URI is allowed."""
        self.denies = False
        """The person says no."""
        self.supported_scopes: list[str] | None = None
        self.auth_methods = list(METHODS)
        self.extra_metadata: dict[str, Any] = {}
        """What the metadata says instead; None leaves a member out."""
        self.failures: list[int] = []
        """HTTP statuses that the next token requests get instead of an answer."""
        self.gates: dict[str, anyio.Event] = {}
        """By a name of ``Asked.names``: its requests wait for the event, after they were noted."""
        self.asked: list[Asked] = []
        self.secrets: list[str] = []
        """Every code, token and secret that this server ever made or was told, for scans."""
        self.codes: dict[str, Code] = {}
        self.tokens: list[Token] = []
        self.clients: dict[str, Client] = {}
        self._news = anyio.Event()
        self._add_clients()
        self._register_parts()

    def _add_clients(self) -> None:
        person = Client("pre-registered", self.new_secret("client-secret"), (REDIRECT,))
        machine = Client("machine", self.new_secret("client-secret"), (), ("client_credentials",))
        self.clients = {client.client_id: client for client in (person, machine)}

    def _register_parts(self) -> None:
        self.register_grant(CodeGrant, [Challenged(required=True)])
        self.register_grant(RotatingRefreshGrant)
        self.register_grant(MachineGrant)
        self.register_endpoint(Registration)
        self.register_extension(_Issuer(self))
        generator = BearerTokenGenerator(self._access, self._refresh, self._expires_in)
        self.register_token_generator("default", generator)

    def _access(self, **_about: object) -> str:
        return self.new_secret("access")

    def _refresh(self, **_about: object) -> str:
        return self.new_secret("refresh")

    def _expires_in(self, _client: object, _grant_type: str) -> int:
        return int(self.token_lifetime) if self.tells_lifetime else 0

    def new_secret(self, kind: str) -> str:
        """Return a new secret that says what it is, and keep it for scans."""
        secret = f"{kind}-{next(_numbers)}-{secrets.token_urlsafe(24)}"
        self.secrets.append(secret)
        return secret

    # What tests ask and tell.

    def of(self, name: str) -> list[Asked]:
        """Return the requests that count as this: an endpoint, or ``token:`` and a grant type."""
        return [asked for asked in self.asked if name in asked.names]

    def count(self, name: str) -> int:
        """Return how many requests count as this."""
        return len(self.of(name))

    async def has_seen(self, name: str, count: int) -> None:
        """Return once so many requests have come."""
        while self.count(name) < count:
            self._news = anyio.Event()
            await self._news.wait()

    def token_of(self, bearer: str) -> Token | None:
        """Return the token if it is valid now."""
        return next((each for each in self.tokens if each.access_token == bearer and each.is_valid), None)

    def expire_all(self) -> None:
        """No access token is valid any more; refresh tokens are."""
        for token in self.tokens:
            token.expires_at = 0.0

    def revoke_all(self) -> None:
        """No access token and no refresh token is valid any more."""
        for token in self.tokens:
            token.is_revoked = token.is_refresh_revoked = True

    # What Authlib asks.

    @override
    def query_client(self, client_id: str) -> Client | None:
        if self.takes_metadata_documents and client_id.startswith("https://"):
            return Client(client_id, auth_method="none")
        return self.clients.get(client_id)

    @override
    def save_token(self, token: dict[str, Any], request: Any) -> None:
        if not self.issues_refresh_tokens:
            token.pop("refresh_token", None)
        # A refresh that does not rotate leaves the old token good: the new access token hangs on the same one.
        kept = "" if request.refresh_token is None else request.refresh_token.refresh_token
        self.tokens.append(
            Token(
                token["access_token"],
                token.get("refresh_token", kept),
                request.client.client_id,
                token.get("scope", ""),
                request.payload.data.get("resource", ""),
                time.time() + self.token_lifetime,
            )
        )

    @override
    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        pass

    @override
    def create_oauth2_request(self, request: Any) -> Any:
        return request

    @override
    def create_json_request(self, request: Any) -> Any:
        return request

    @override
    def handle_response(self, status: int, body: Any, headers: Any) -> Answer:
        return Answer(status, body, dict(headers))

    @override
    def validate_requested_scope(self, scope: Any) -> None:
        self.scopes_supported = self.supported_scopes
        super().validate_requested_scope(scope)

    def metadata(self) -> dict[str, Any]:
        """Return what the metadata document says now."""
        told: dict[str, Any] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": self.auth_methods,
            "code_challenge_methods_supported": ["S256"],
        }
        if self.registers:
            told["registration_endpoint"] = f"{self.issuer}/register"
        if self.supported_scopes is not None:
            told["scopes_supported"] = self.supported_scopes
        if self.tells_issuer:
            told["authorization_response_iss_parameter_supported"] = True
        if self.takes_metadata_documents:
            told["client_id_metadata_document_supported"] = True
        return {name: value for name, value in {**told, **self.extra_metadata}.items() if value is not None}

    # What HTTP asks.

    async def note(self, endpoint: str, parameters: Mapping[str, Any], request: Request) -> None:
        """Note a request, and wait where a gate is closed for it."""
        asked = Asked(endpoint, parameters, dict(request.headers))
        self.asked.append(asked)
        self._news.set()
        for name in asked.names & self.gates.keys():
            await self.gates[name].wait()

    async def on_metadata(self, request: Request) -> Response:
        await self.note("metadata", {}, request)
        return JSONResponse(self.metadata())

    async def on_authorize(self, request: Request) -> Response:
        parameters = dict(request.query_params)
        await self.note("authorize", parameters, request)
        asked = FormRequest("GET", str(request.url), parameters, request.headers)
        try:
            grant = self.get_authorization_grant(asked)
        except OAuth2Error as error:
            return _response(self.handle_error_response(asked, error))
        person = None if self.denies else "person"
        return _response(self.create_authorization_response(asked, person, grant))

    async def on_token(self, request: Request) -> Response:
        parameters = {name: str(value) for name, value in (await request.form()).items()}
        await self.note("token", parameters, request)
        if self.failures:
            return JSONResponse({"error": "temporarily_unavailable"}, self.failures.pop(0))
        headers = {"Authorization": request.headers.get("authorization", "")}
        return _response(
            self.create_token_response(FormRequest("POST", str(request.url), parameters, headers))
        )

    async def on_register(self, request: Request) -> Response:
        body = await request.json()
        await self.note("register", body, request)
        if not self.registers:
            return Response(status_code=404)
        asked = BodyRequest(str(request.url), body)
        return _response(self.create_endpoint_response(Registration.ENDPOINT_NAME, asked))

    def application(self) -> Starlette:
        """Return its HTTP side."""
        path = urlsplit(self.issuer).path
        return Starlette(
            routes=[
                Route(f"/.well-known/oauth-authorization-server{path}", self.on_metadata),
                Route(f"{path}/authorize", self.on_authorize),
                Route(f"{path}/token", self.on_token, methods=["POST"]),
                Route(f"{path}/register", self.on_register, methods=["POST"]),
            ]
        )


def _response(answer: Any) -> Response:
    headers = {name: value for name, value in answer.headers.items() if name.lower() != "content-type"}
    if isinstance(answer.body, dict | list):
        return JSONResponse(dict(answer.body), answer.status, headers)
    return Response(answer.body, answer.status, headers)


@asynccontextmanager
async def authorization_server(path: str = "") -> AsyncGenerator[AuthorizationServer]:
    """Run an authorization server whose issuer has this path."""
    made: list[AuthorizationServer] = []

    def build(origin: str) -> Starlette:
        made.append(AuthorizationServer(origin + path))
        return made[0].application()

    async with peer_app(build):
        yield made[0]
