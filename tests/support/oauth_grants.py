"""What an authorization server of the tests keeps, and its grants and endpoints on Authlib's server side.

The switches and the HTTP side are ``authorization_server``. RFC 6749, 7591, 7636, 8707.
"""

# pyright: reportIncompatibleMethodOverride=false
# Authlib guesses types of its own seams from bodies that only raise.

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from authlib.oauth2.rfc6749 import ClientMixin, JsonPayload, JsonRequest, OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749.grants import (
    AuthorizationCodeGrant,
    ClientCredentialsGrant,
    RefreshTokenGrant,
)
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7591 import ClientMetadataClaims, ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.registration import ClientMetadataClaims as OpenIdClientMetadataClaims
from typing_extensions import override

METHODS = ["client_secret_basic", "client_secret_post", "none"]


class InvalidTargetError(OAuth2Error):
    """The resource is not the one that the code or token is for. RFC 8707 §2."""

    error = "invalid_target"


@dataclass(frozen=True)
class Client(ClientMixin):
    """One client that the authorization server knows."""

    client_id: str
    client_secret: str = ""
    redirect_uris: tuple[str, ...] | None = None
    """None allows every one."""
    grant_types: tuple[str, ...] = ("authorization_code", "refresh_token")
    auth_method: str = "client_secret_basic"
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it registered with."""

    @override
    def get_client_id(self) -> str:
        return self.client_id

    @override
    def get_default_redirect_uri(self) -> str | None:
        return self.redirect_uris[0] if self.redirect_uris else None

    @override
    def get_allowed_scope(self, scope: str | None) -> str:
        return scope or ""

    @override
    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return self.redirect_uris is None or redirect_uri in self.redirect_uris

    @override
    def check_client_secret(self, client_secret: str) -> bool:
        return bool(self.client_secret) and client_secret == self.client_secret

    @override
    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return endpoint != "token" or method == self.auth_method

    @override
    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    @override
    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.grant_types


@dataclass
class Code:
    """One authorization code that was not used yet."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    resource: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class Token:
    """One access token and the refresh token that came with it."""

    access_token: str
    refresh_token: str
    client_id: str
    scope: str
    resource: str
    expires_at: float
    is_revoked: bool = False
    is_refresh_revoked: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether a protected server accepts it now."""
        return not self.is_revoked and time.time() < self.expires_at

    def check_client(self, client: Client) -> bool:
        return client.client_id == self.client_id

    def get_scope(self) -> str:
        return self.scope


class Keeping(Protocol):
    """What the grants need of the authorization server."""

    codes: dict[str, Code]
    tokens: list[Token]
    clients: dict[str, Client]
    rotates: bool

    def new_secret(self, kind: str) -> str: ...
    def metadata(self) -> dict[str, Any]: ...


@dataclass
class Answer:
    """What an endpoint answers, as Authlib's extensions may still change it."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def location(self) -> str | None:
        return self.headers.get("Location")

    @location.setter
    def location(self, value: str) -> None:
        self.headers["Location"] = value


class FormRequest(OAuth2Request):
    """A request whose parameters are in the query (GET) or the form (POST)."""

    def __init__(self, method: str, uri: str, parameters: dict[str, str], headers: Mapping[str, str]) -> None:
        super().__init__(method, uri, headers=headers)
        self.payload = BasicOAuth2Payload(parameters)
        self._parameters = parameters

    @property
    @override
    def args(self) -> dict[str, str]:
        return self._parameters

    @property
    @override
    def form(self) -> dict[str, str]:
        return self._parameters


class BodyPayload(JsonPayload):
    """The JSON body of a registration."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body

    @property
    @override
    def data(self) -> dict[str, Any]:
        return self._body


class BodyRequest(JsonRequest):
    """A registration."""

    def __init__(self, uri: str, body: dict[str, Any]) -> None:
        super().__init__("POST", uri)
        self.payload = BodyPayload(body)


class Challenged(CodeChallenge):
    """Proof keys, S256 alone, asked of every client."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]  # noqa: RUF012 Authlib's own shape

    @override
    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        super().validate_code_challenge(grant, redirect_uri)
        if grant.request.payload.data.get("code_challenge_method") != "S256":
            raise OAuth2Error(error="invalid_request")


class CodeGrant(AuthorizationCodeGrant):
    """A code for one resource; single use."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    @override
    def save_authorization_code(self, code: str, request: Any) -> None:
        data = request.payload.data
        if "resource" not in data:
            raise InvalidTargetError
        keeping: Keeping = self.server
        keeping.codes[code] = Code(
            code,
            request.client.client_id,
            data["redirect_uri"],
            request.scope,
            data["resource"],
            data["code_challenge"],
            data["code_challenge_method"],
        )

    @override
    def generate_authorization_code(self) -> str:
        return self.server.new_secret("code")

    @override
    def query_authorization_code(self, code: str, client: Client) -> Code | None:
        found = self.server.codes.get(code)
        return found if found and found.client_id == client.client_id else None

    @override
    def delete_authorization_code(self, authorization_code: Code) -> None:
        del self.server.codes[authorization_code.code]

    @override
    def authenticate_user(self, authorization_code: Code) -> str:
        if self.request.form.get("resource") != authorization_code.resource:
            raise InvalidTargetError
        return "person"


class RotatingRefreshGrant(RefreshTokenGrant):
    """A new access token, and a new refresh token where the server rotates them."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def __init__(self, request: Any, server: Any) -> None:
        super().__init__(request, server)
        self.INCLUDE_NEW_REFRESH_TOKEN = server.rotates

    @override
    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        matches = (token for token in self.server.tokens if token.refresh_token == refresh_token)
        return next((token for token in matches if not token.is_refresh_revoked), None)

    @override
    def authenticate_user(self, refresh_token: Token) -> str:
        if self.request.form.get("resource") != refresh_token.resource:
            raise InvalidTargetError
        return "person"

    @override
    def revoke_old_credential(self, refresh_token: Token) -> None:
        refresh_token.is_revoked = True
        refresh_token.is_refresh_revoked = self.server.rotates


class MachineGrant(ClientCredentialsGrant):
    """A token for the client itself."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS


class Registration(ClientRegistrationEndpoint):
    """Open registration, for whoever asks."""

    def __init__(self, server: Any = None) -> None:
        super().__init__(server, claims_classes=[ClientMetadataClaims, OpenIdClientMetadataClaims])

    @override
    def authenticate_token(self, request: Any) -> str:
        return "anybody"

    @override
    def get_server_metadata(self) -> dict[str, Any]:
        return self.server.metadata()

    @override
    def generate_client_id(self, request: Any) -> str:
        return f"registered-{len(self.server.clients)}"

    @override
    def generate_client_secret(self, request: Any) -> str:
        is_public = request.payload.data.get("token_endpoint_auth_method") == "none"
        return "" if is_public else self.server.new_secret("client-secret")

    @override
    def save_client(
        self, client_info: dict[str, Any], client_metadata: dict[str, Any], request: Any
    ) -> Client:
        client = Client(
            client_info["client_id"],
            client_info["client_secret"],
            tuple(client_metadata.get("redirect_uris", ())),
            tuple(client_metadata.get("grant_types", ("authorization_code",))),
            client_metadata.get("token_endpoint_auth_method", "client_secret_basic"),
            request.payload.data,
        )
        self.server.clients[client.client_id] = client
        if not client.client_secret:
            del client_info["client_secret"]
        return client
