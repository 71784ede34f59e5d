"""The gate before every route: Host, Origin and CORS, then the bearer token. SPEC §security.

Pure ASGI, so that a stream passes through untouched. Whoever passes is in ``scope["state"]["principal"]``.
What the principal may do with one workspace is asked by the door that knows the workspace.
"""

from http import HTTPStatus

from app.core.door_problems import HostRefused, OriginRefused, Unauthenticated
from app.core.principal import Principal
from app.core.problem import Problem
from app.doors.allow_lists import HostAllowList, OriginAllowList
from app.doors.asgi import (
    Endpoint,
    Headers,
    HeaderValues,
    Message,
    Receive,
    Scope,
    Send,
    header_values,
    headers_of,
)
from app.doors.presence import presence_of
from app.doors.problem_response import send_blank_problem, send_problem
from app.settings import Settings
from app.tokens import Tokens

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What needs no token."""
PREFLIGHT_MAX_AGE_S = b"600"
_OWN_SITE = frozenset({b"none", b"same-origin"})
"""Who asks by ``Sec-Fetch-Site``: a person's own hand, or a page of ours. Only browsers send it, and no page can forge
it. W3C Fetch Metadata."""
_ENCODED_SEPARATORS = (b"%2f", b"%5c", b"%00")


class Gate:
    """ASGI middleware that lets through only what may use the daemon."""

    def __init__(self, app: Endpoint, *, settings: Settings, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = HostAllowList(settings)
        self._origins = OriginAllowList(settings.allowed_origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request with a Problem, or hand it on."""
        if scope["type"] != "http":
            await self._answer_no_request(scope, receive, send)
            return
        headers = headers_of(scope)
        try:
            origin = self._admitted(headers)
        except Problem as refusal:
            await send_problem(send, refusal)
            return
        if origin is not None:
            send = _with_cors(send, origin)
        if origin is not None and _is_preflight(scope):
            await _send_preflight(scope, send)
        elif b"%" in scope.get("raw_path", b"") and _hides_a_separator(scope):
            await send_blank_problem(send, HTTPStatus.NOT_FOUND, "There is nothing at this path.")
        elif scope["path"] in OPEN_PATHS or self._is_known(scope, headers):
            await self._app(scope, receive, send)
        else:
            await send_problem(send, Unauthenticated())

    async def _answer_no_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _admitted(self, headers: HeaderValues) -> bytes | None:
        """Return the allowed Origin of the request, None where it has none.

        Raises:
            HostRefused: no Host, several, or one that is not served.
            OriginRefused: an Origin that is not allowed, ``null`` and what is no origin among them; or none, from a
                page of another origin: images, frames and links bring no Origin, and a GET can make a workspace start.
        """
        hosts = headers.get(b"host", ())
        if len(hosts) != 1 or not self._hosts.admits(hosts[0].decode("latin-1")):
            raise HostRefused
        origins = headers.get(b"origin")
        if origins is None:
            if b"sec-fetch-site" in headers and not _OWN_SITE.issuperset(headers[b"sec-fetch-site"]):
                raise OriginRefused
            return None
        if len(origins) != 1 or not self._origins.admits(origins[0].decode("latin-1")):
            raise OriginRefused
        return origins[0]

    def _is_known(self, scope: Scope, headers: HeaderValues) -> bool:
        """Return whether the request shows a token; the scope has the principal from then on."""
        presented = headers.get(b"authorization", ())
        if len(presented) > 1:
            return False
        principal = self._tokens.principal(presented[0].decode("latin-1") if presented else None)
        if principal is None:
            return False
        scope.setdefault("state", {})["principal"] = principal
        presence = presence_of(scope)
        if presence is not None:
            presence.is_known = True
        return True


def principal_of(scope: Scope) -> Principal:
    """Return who the gate let through."""
    principal: Principal = scope["state"]["principal"]
    return principal


def _hides_a_separator(scope: Scope) -> bool:
    """Return whether the server decoded one: /a%2Fb would be routed as two segments, where the client named one."""
    raw_path: bytes = scope["raw_path"].lower()
    return any(separator in raw_path for separator in _ENCODED_SEPARATORS)


def _is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and bool(header_values(scope, b"access-control-request-method"))


async def _send_preflight(scope: Scope, send: Send) -> None:
    headers: list[tuple[bytes, bytes]] = [
        (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
        (b"access-control-allow-headers", b"authorization, content-type, accept, traceparent, tracestate"),
        (b"access-control-max-age", PREFLIGHT_MAX_AGE_S),
    ]
    if header_values(scope, b"access-control-request-private-network"):
        headers.append((b"access-control-allow-private-network", b"true"))
    await send({"type": "http.response.start", "status": HTTPStatus.NO_CONTENT.value, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def _with_cors(send: Send, origin: bytes) -> Send:
    """Return a send that lets the allowed origin read the response."""
    added: Headers = (
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", b"retry-after, www-authenticate"),
        (b"vary", b"origin"),
    )

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], *added]
        await send(message)

    return sending
