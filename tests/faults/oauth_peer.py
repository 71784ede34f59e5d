"""A case's OAuth peer: an MCP server, its metadata and an authorization server that believes every code. SPEC §oauth.

A good authorization server is ``tests.support.authorization_server``; this one says what a case has it say.
"""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.support.scripted_http import Reply, ScriptedHttp, Seen

Json = dict[str, Any]
PRM = "/.well-known/oauth-protected-resource/mcp"
METADATA = "/.well-known/oauth-authorization-server"
_TOLD = (
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "token_endpoint_auth_methods_supported",
)
_CHALLENGE = 'Bearer resource_metadata="{origin}' + PRM + '"'


@dataclass
class OAuthPeer:
    """What stands before the answers of a scripted server: metadata, tokens, and a guard at ``/mcp``."""

    http: ScriptedHttp
    told: Json
    issued: dict[str, str] = field(default_factory=dict[str, str])
    """The scope of each access token that is good."""
    takes_none: bool = False
    """Whether it takes no token any more, not even a new one."""
    secrets: list[str] = field(default_factory=list[str])
    """Every token ever issued."""
    refresh_token: str = ""
    """The one that was issued last."""
    paths: list[str] = field(default_factory=list[str])
    """The path of every request that was for this part, without its query, in order."""
    asked: dict[str, list[dict[str, str]]] = field(default_factory=dict[str, list[dict[str, str]]])
    """The parameters of each request to ``authorize``, ``token`` and ``register``."""
    scope: str = ""
    """What was consented to last."""
    basic: list[str] = field(default_factory=list[str])
    """The ``Authorization`` header of each token request."""

    @property
    def issuer(self) -> str:
        """What its metadata calls itself."""
        return self.told.get("issuer", self.http.origin)

    def count(self, name: str) -> int:
        """Return how many requests came to ``token``, or ``token:refresh_token`` of that grant type."""
        endpoint, _, grant_type = name.partition(":")
        asked = self.asked.get(endpoint, [])
        return sum(not grant_type or each.get("grant_type") == grant_type for each in asked)

    def move(self) -> None:
        """Take no token any more, however new: those who give them are others now."""
        self.takes_none = True

    def expire(self) -> None:
        """Make every access token bad; the refresh token stays good."""
        self.issued.clear()

    def __call__(self, seen: Seen) -> Reply | None:
        """Return the answer where the request is this part's; None leaves it to the scripted server."""
        split = urlsplit(seen.path)
        if split.path == "/mcp":
            return self._guard(seen)
        self.paths.append(split.path)
        endpoint = split.path.rpartition("/")[2]
        if endpoint in _ENDPOINTS:
            return _ENDPOINTS[endpoint](self, seen, dict(parse_qsl(split.query)))
        document = self._documents().get(split.path)
        return Reply(404) if document is None else _document(document)

    def _guard(self, seen: Seen) -> Reply | None:
        scheme, _, token = seen.headers.get("authorization", "").partition(" ")
        wanted = self.told.get("strict_scheme")
        scope = None if self.takes_none else self.issued.get(token)
        if scope is None or (wanted and scheme != wanted):
            return self._refusal(
                401, self.told.get("challenge") or _CHALLENGE.format(origin=self.http.origin)
            )
        name = seen.params.get("name", seen.params.get("uri", ""))
        needed = self.told.get("scopes_by_tool", {}).get(name, "")
        if set(needed.split()) <= set(scope.split()):
            return None
        metadata = f'resource_metadata="{self.http.origin}{PRM}"'
        return self._refusal(403, f'Bearer error="insufficient_scope", scope="{needed}", {metadata}')

    @staticmethod
    def _refusal(status: int, challenge: str) -> Reply:
        return _document({"error": "invalid_token"}, status, {"WWW-Authenticate": challenge})

    def _documents(self) -> Json:
        """Return each metadata document by its path."""
        protected = {
            "resource": self.told.get("resource", self.http.url),
            "authorization_servers": [self.told.get("listed", self.issuer)],
        }
        path = urlsplit(self.issuer).path.rstrip("/")
        told = self.told.get("as_meta", {METADATA + path: "good"})
        servers = {path: self._metadata() if each == "good" else each for path, each in told.items()}
        changed = {"/prm2": self.told["prm2"]} if "prm2" in self.told else {}
        return {self.told.get("prm_at", PRM): protected, **servers, **changed}

    def _metadata(self) -> Json:
        base = self.issuer.rstrip("/")
        good = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "client_id_metadata_document_supported": self.told.get("cimd", False),
            "authorization_response_iss_parameter_supported": self.told.get("iss_supported", False),
        }
        told = {name: self.told[name] for name in _TOLD if self.told.get(name) is not None}
        return {**good, **told}

    def note(self, endpoint: str, parameters: dict[str, str]) -> None:
        """Keep the parameters of a request."""
        self.asked.setdefault(endpoint, []).append(parameters)

    def _authorize(self, _seen: Seen, query: dict[str, str]) -> Reply:
        """Consent at once."""
        self.note("authorize", query)
        self.scope = query.get("scope", "")
        answer = {"code": "code-of-the-peer", "state": query["state"]}
        if self.told.get("iss_supported"):
            answer["iss"] = self.issuer
        return Reply(302, {"Location": f"{query['redirect_uri']}?{urlencode(answer)}"})

    def _token(self, seen: Seen, _query: dict[str, str]) -> Reply:
        form = dict(parse_qsl(seen.body.decode()))
        self.note("token", form)
        self.basic.append(seen.headers.get("authorization", ""))
        if "token_raw" in self.told:
            return Reply(200, {"Content-Type": "application/json"}, self.told["token_raw"].encode())
        if form["grant_type"] == "refresh_token" and form["refresh_token"] != self.refresh_token:
            return _document({"error": "invalid_grant"}, 400)
        number = len(self.secrets)
        access = f"access-token-{number}-of-the-peer"
        self.issued[access] = self.scope
        self.refresh_token = f"refresh-token-{number}-of-the-peer"
        self.secrets += [access, self.refresh_token]
        answer = {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": 3600,
            "refresh_token": self.refresh_token,
        }
        return _document({**answer, **self.told.get("token", {})})

    def _register(self, seen: Seen, _query: dict[str, str]) -> Reply:
        self.note("register", json.loads(seen.body))
        client = {"client_id": "dcr-id", "token_endpoint_auth_method": "none"}
        return _document(self.told.get("registers", client), self.told.get("register_status", 201))


def _document(value: Json, status: int = 200, headers: dict[str, str] | None = None) -> Reply:
    """Return a JSON answer to what need be no message; it is bytes, so that nothing is filled in."""
    return Reply(status, {"Content-Type": "application/json", **(headers or {})}, json.dumps(value).encode())


_ENDPOINTS = {
    "authorize": OAuthPeer._authorize,
    "token": OAuthPeer._token,
    "register": OAuthPeer._register,
}
