"""What HTTP heads, challenges and authorization servers say. SPEC §connection, §oauth."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from multidict import CIMultiDict, CIMultiDictProxy
from typing_extensions import override
from yarl import URL

from app.connections.address_rule import AddressRule, Reach, is_legacy_number, reach_of
from app.connections.http_exchange import Post
from app.connections.http_response import bearer_challenge, media_type, redirect_target
from app.connections.oauth.clients import OAuthClient, client_for
from app.connections.oauth.discovery import AuthorizationServer, discover
from app.connections.oauth.fetch import Fetched, Fetcher, Fetching, _document
from app.connections.oauth.tokens import TokenRefusedError, client_credentials
from app.core.challenge import parse_challenge
from app.core.definitions import ClientCredentials, OAuthDynamic
from app.core.masking import Mask
from app.core.problem import Problem
from app.core.text_rules import endpoint_fault
from app.core.web_host import web_host
from app.settings import Settings
from tests.fuzz.target import CANARY, JSON_WORDS, URL_WORDS, Target, driven, refused

URL_OF_SERVER: Final = URL("https://mcp.example.com/v1/mcp")
_METADATA: Final = (
    b'{"resource": "https://mcp.example.com/v1", "authorization_servers": ["https://as.example.com"], "issuer": '
    b'"https://as.example.com", "authorization_endpoint": "https://as.example.com/a", "token_endpoint": "https://as.example.com/t", '
    b'"code_challenge_methods_supported": ["S256"], "scopes_supported": ["a b", "c"]}'
)


@dataclass(frozen=True, slots=True)
class _Head:
    """As much of an answer as the readers of its head look at."""

    status: int
    headers: CIMultiDictProxy[str]

    @property
    def content_type(self) -> str:
        return self.headers.get("Content-Type", "")


def _head(data: bytes) -> None:
    headers = CIMultiDict[str]()
    for line in data.decode("utf-8", "surrogateescape").split("\n"):
        name, colon, value = line.partition(":")
        if colon and name:
            headers.add(name, value.strip())
    answer = cast("Post", _Head(307, CIMultiDictProxy(headers)))
    target = redirect_target(answer, URL_OF_SERVER)
    assert target is None or target.origin() == URL_OF_SERVER.origin(), "a redirect leaves the origin"
    assert media_type(answer) == media_type(answer).lower()
    parse_challenge(bearer_challenge(answer))


def _challenge(data: bytes) -> None:
    found = parse_challenge(data.decode("latin-1"))
    assert found.scope is None or all(found.scope)


class _Said(Fetcher):
    """A fetcher to which everything was said already."""

    def __init__(self, data: bytes, status: int = 200) -> None:
        _TERMS.mask = Mask()  # what one input leaves behind is not to be paid for by the next
        super().__init__(_TERMS, "s", URL_OF_SERVER)
        self._said = Fetched(status, _document(data))

    @override
    async def get(self, url: str, what: str) -> Fetched:
        self._judged_url(url, what)
        return self._said

    @override
    async def post(self, url: str, what: str, *, body: str, headers: Mapping[str, str]) -> Fetched:
        self._judged_url(url, what)
        assert "\r" not in "".join([body, *headers, *headers.values()])
        return self._said


_TERMS: Final = Fetching(Settings(), Mask())
_CREDENTIALS: Final = ClientCredentials.model_validate(
    {"type": "client-credentials", "clientId": "c", "clientSecret": "${S}"}
)
_DYNAMIC: Final = OAuthDynamic.model_validate({"type": "oauth", "redirectUrl": "http://127.0.0.1:7/cb"})
_SERVER: Final = AuthorizationServer(
    "https://mcp.example.com", "https://as.example.com", "https://as.example.com/a", "https://as.example.com/t",
    "https://as.example.com/r", (), (), True, False, ("client_secret_basic",),
)  # fmt: skip


def _metadata(data: bytes) -> None:
    for config in (_CREDENTIALS, _DYNAMIC):
        try:
            found = driven(discover(_Said(data), parse_challenge(None), config))
        except Problem as problem:
            refused(problem)
        else:
            for url in (found.authorization_endpoint, found.token_endpoint, found.registration_endpoint):
                assert url is None or endpoint_fault(url) is None


def _named_url(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    try:
        driven(_Said(b"{}").get(text, "it"))
    except Problem as problem:
        refused(problem)
    host = web_host(text)
    assert host is None or host.isascii()
    rule = AddressRule("public")
    if rule.allows_host(text) and reach_of(text) is not Reach.PUBLIC:
        assert not is_legacy_number(text)


def _token_answer(data: bytes) -> None:
    for status in (200, 400):
        said = _Said(data, status)
        client = OAuthClient("https://as.example.com", "c", "s", "client_secret_basic")
        try:
            tokens = driven(client_credentials(said, _SERVER, client, ()))
        except (Problem, TokenRefusedError) as problem:
            refused(problem)
        else:
            assert CANARY not in repr(tokens)
            assert tokens.header.isascii()
            assert tokens.header.isprintable()
        try:
            registered = driven(client_for(said, _SERVER, _DYNAMIC))
        except Problem as problem:
            refused(problem)
        else:
            assert registered.client_id


TARGETS: Final = (
    Target(
        "answer-head",
        _head,
        (
            b'Location: /v2?x=1\nContent-Type: text/event-stream; charset=x\nWWW-Authenticate: Basic, Bearer a="b, c"',
        ),
        (b"Location: ", b"WWW-Authenticate: ", b"Bearer ", b'"', b"\\", b",", *URL_WORDS),
    ),
    Target(
        "challenge",
        _challenge,
        (b'Basic realm="x", Bearer resource_metadata="https://a/b", scope="a b", error=insufficient_scope',),
        (b"Bearer ", b'="', b'"', b"\\", b",", b"scope=", b" ", b"=", b"\t", b"error="),
    ),
    Target(
        "metadata", _metadata, (_METADATA,), (*JSON_WORDS, *URL_WORDS, CANARY.encode()), steps_per_byte=200
    ),
    Target(
        "named-url",
        _named_url,
        (b"https://as.example.com:8443/.well-known/x?y", b"http://[::1]:80/"),
        URL_WORDS,
    ),
    Target(
        "token-answer",
        _token_answer,
        (
            b'{"access_token": "canary-5e7d1c-secret", "token_type": "Bearer", "expires_in": "3600", "scope": "a b"}',
            b'{"client_id": "c", "client_secret": "canary-5e7d1c-secret", "token_endpoint_auth_method": "none"}',
        ),
        (*JSON_WORDS, b'"error": "invalid_grant"', b"\\r\\n", b'"expires_in": '),
        steps_fixed=6_000,
    ),
)
