"""From a challenge to the authorization server that answers it. SPEC §oauth; RFC 9728, RFC 8414, OIDC Discovery 1.0.

MCP 2026-07-28 basic/authorization/authorization-server-discovery. No endpoint is ever inferred: what no document says
is not there. Nothing is kept: whoever asks again sees an authorization server that has changed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn
from urllib.parse import urlsplit

from yarl import URL

from app.connections.oauth.fetch import Fetcher
from app.core.challenge import BearerChallenge
from app.core.definitions import (
    ClientCredentials,
    InteractiveOAuth,
    OAuthDynamic,
    OAuthMetadataDocument,
    OAuthPreRegistered,
)
from app.core.json_value import Json, JsonObject
from app.core.oauth_problems import OAuthClientCredentialsFailed, OAuthMetadataInvalid
from app.core.problem import Problem
from app.core.problems import ServerUnavailable
from app.core.scope_names import scope_names, union
from app.core.text_rules import endpoint_fault, issuer_fault

RESOURCE_METADATA: Final = "its protected resource metadata"
SERVER_METADATA: Final = "its authorization server's metadata"
SERVERS_MAX: Final = 5
"""Authorization servers of one resource that are looked at."""


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """What a token for one server is asked for, and where; every part as the metadata has it, to the letter."""

    resource: str
    """The ``resource`` parameter of every request."""
    issuer: str
    authorization_endpoint: str | None
    """Never None where a person signs in."""
    token_endpoint: str
    registration_endpoint: str | None
    resource_scopes: tuple[str, ...]
    """The scopes that the protected resource lists."""
    scopes_supported: tuple[str, ...]
    """The scopes that the authorization server lists."""
    is_iss_sent: bool
    """Whether every authorization response has ``iss``. RFC 9207 §3."""
    takes_metadata_documents: bool
    """Whether a client metadata URL is a client id."""
    token_auth_methods: tuple[str, ...]


async def discover(
    fetcher: Fetcher,
    challenge: BearerChallenge,
    config: InteractiveOAuth | ClientCredentials,
    *,
    issuer: str | None = None,
) -> AuthorizationServer:
    """Return the authorization server of a protected server, its metadata asked for afresh and judged.

    Of several the first usable one is taken. ``issuer`` is the only one that may be, as where credentials belong to
    it; left out, the definition's where it has one.

    Raises:
        OAuthMetadataInvalid: the server or its authorization server describes itself in no way that can be used.
        OAuthClientCredentialsFailed: the client credentials belong to another issuer.
        ServerUnavailable: one of them gives no answer.
    """
    resource = await _resource(fetcher, challenge)
    listed = _issuers(fetcher, resource)
    wanted = issuer or _own_issuer(config)
    if wanted is not None:
        if wanted not in listed:
            _refuse_issuer(fetcher, config)
        listed = [wanted]
    refusal: Problem | None = None
    for each in listed[:SERVERS_MAX]:
        try:
            metadata = await _server_metadata(fetcher, each)
            return _judged(fetcher, resource, each, metadata, is_interactive=_is_interactive(config))
        except (OAuthMetadataInvalid, ServerUnavailable) as problem:
            refusal = refusal or problem
    raise refusal or _invalid(fetcher, f"{RESOURCE_METADATA} names no authorization server")


def _is_interactive(config: InteractiveOAuth | ClientCredentials) -> bool:
    return not isinstance(config, ClientCredentials)


def _own_issuer(config: InteractiveOAuth | ClientCredentials) -> str | None:
    match config:
        case OAuthPreRegistered(issuer=issuer) | ClientCredentials(issuer=issuer):
            return issuer
        case OAuthMetadataDocument() | OAuthDynamic():
            return None


def _refuse_issuer(fetcher: Fetcher, config: InteractiveOAuth | ClientCredentials) -> NoReturn:
    reason = "its authorization server is not the issuer that the credentials belong to"
    if isinstance(config, ClientCredentials):
        raise OAuthClientCredentialsFailed(fetcher.server, reason, client_id=config.client_id)
    raise _invalid(fetcher, reason)


async def _resource(fetcher: Fetcher, challenge: BearerChallenge) -> JsonObject:
    """Return the protected resource metadata, its ``resource`` judged. RFC 9728 §3."""
    urls: Sequence[str] = challenge.resource_metadata
    if not urls:
        root = f"{fetcher.url.origin()}/.well-known/oauth-protected-resource"
        path = fetcher.url.raw_path_qs
        urls = [root] if path == "/" else [root + path, root]
    document = await _first(fetcher, urls, RESOURCE_METADATA)
    resource = document.get("resource")
    if not isinstance(resource, str) or not _covers(resource, fetcher.url):
        raise _invalid(fetcher, f"{RESOURCE_METADATA} is of another resource")
    return document


async def _server_metadata(fetcher: Fetcher, issuer: str) -> JsonObject:
    """Return the metadata of the issuer, from the first well-known place that has any. RFC 8414 §3."""
    if issuer_fault(issuer) is not None:
        raise _invalid(fetcher, f"{RESOURCE_METADATA} names an issuer that is no https URL")
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}/.well-known", parts.path.rstrip("/")
    urls = [f"{origin}/oauth-authorization-server{path}", f"{origin}/openid-configuration{path}"]
    if path:
        urls.append(f"{parts.scheme}://{parts.netloc}{path}/.well-known/openid-configuration")
    document = await _first(fetcher, urls, SERVER_METADATA)
    if document.get("issuer") != issuer:
        raise _invalid(fetcher, _difference(issuer, document.get("issuer")))
    return document


def _difference(listed: str, issuer: Json) -> str:
    """Return which two issuers differ, without their words, which are the server's."""
    two = f"the issuer in {SERVER_METADATA} is not the one in {RESOURCE_METADATA}"
    is_slash = isinstance(issuer, str) and issuer.rstrip("/") == listed.rstrip("/")
    return f"{two}: they differ in a slash at the end" if is_slash else two


async def _first(fetcher: Fetcher, urls: Sequence[str], what: str) -> JsonObject:
    """Return the first JSON object that one of the places has.

    Raises:
        OAuthMetadataInvalid: none has one.
        ServerUnavailable: none has one now.
    """
    passing: int | None = None
    for url in urls:
        fetched = await fetcher.get(url, what)
        if fetched.is_success and fetched.document is not None:
            return fetched.document
        passing = fetched.status if fetched.is_passing else passing
    if passing is not None:
        raise ServerUnavailable(fetcher.server, "http", f"{what} cannot be had", http_status=passing)
    raise _invalid(fetcher, f"{what} cannot be found")


def _judged(
    fetcher: Fetcher, resource: JsonObject, issuer: str, metadata: JsonObject, *, is_interactive: bool
) -> AuthorizationServer:
    """Return the authorization server that two documents describe.

    Raises:
        OAuthMetadataInvalid: an endpoint that is needed is missing or not fit to be used, or S256 is.
    """
    authorization = _endpoint(fetcher, metadata, "authorization_endpoint") if is_interactive else None
    token = _endpoint(fetcher, metadata, "token_endpoint")
    registration = _endpoint(fetcher, metadata, "registration_endpoint") if is_interactive else None
    if token is None or (is_interactive and authorization is None):
        raise _invalid(fetcher, f"{SERVER_METADATA} lacks an endpoint")
    if is_interactive and "S256" not in _texts(metadata.get("code_challenge_methods_supported")):
        raise _invalid(fetcher, f"{SERVER_METADATA} does not offer PKCE with S256")
    methods = _texts(metadata.get("token_endpoint_auth_methods_supported"))
    return AuthorizationServer(
        resource=str(resource["resource"]),
        issuer=issuer,
        authorization_endpoint=authorization,
        token_endpoint=token,
        registration_endpoint=registration,
        resource_scopes=_scopes(resource),
        scopes_supported=_scopes(metadata),
        is_iss_sent=metadata.get("authorization_response_iss_parameter_supported") is True,
        takes_metadata_documents=metadata.get("client_id_metadata_document_supported") is True,
        token_auth_methods=methods or ("client_secret_basic",),  # RFC 8414 §2
    )


def _endpoint(fetcher: Fetcher, metadata: JsonObject, name: str) -> str | None:
    """Return an endpoint of the metadata; None where it has none.

    Raises:
        OAuthMetadataInvalid: it is no URL that a request, or a browser, may be sent to.
    """
    url = metadata.get(name)
    if url is None:
        return None
    if not isinstance(url, str) or endpoint_fault(url) is not None:
        raise _invalid(fetcher, f"the {name} of {SERVER_METADATA} is not https, nor http of this machine")
    return url


def _issuers(fetcher: Fetcher, resource: JsonObject) -> list[str]:
    found = _texts(resource.get("authorization_servers"))
    if not found:
        raise _invalid(fetcher, f"{RESOURCE_METADATA} names no authorization server")
    return list(found)


def _scopes(document: JsonObject) -> tuple[str, ...]:
    return union(*(scope_names(text) for text in _texts(document.get("scopes_supported"))))


def _texts(value: Json) -> tuple[str, ...]:
    """Return the strings of an array; of anything else none."""
    found: Iterable[Json] = value if isinstance(value, list) else ()
    return tuple(each for each in found if isinstance(each, str))


def _covers(resource: str, url: URL) -> bool:
    """Return whether the resource is the URL, or a path prefix of it at the same origin. SPEC §oauth."""
    if "#" in resource:
        return False
    try:
        parsed = URL(resource)
        if parsed.user is not None or parsed.origin() != url.origin():
            return False
    except ValueError:
        return False
    if parsed.raw_query_string:
        return parsed == url
    prefix, path = parsed.raw_path.rstrip("/"), url.raw_path.rstrip("/")
    return path == prefix or path.startswith(f"{prefix}/")


def _invalid(fetcher: Fetcher, reason: str) -> OAuthMetadataInvalid:
    return OAuthMetadataInvalid(fetcher.server, reason)
