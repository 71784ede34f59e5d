"""The gate before every route, on a loopback port: Host, Origin and CORS, the bearer token."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest

from app.doors.asgi import Receive, Scope, Send, send_whole
from app.doors.presence import presence_of
from app.doors.security import Gate, principal_of
from app.settings import Settings
from app.tokens import Tokens
from tests.support.loopback import Loopback, served

pytestmark = pytest.mark.spec("security")

TOKEN = "operator-token-0123456789"
ORIGIN = "https://app.example"
TOKENS = Tokens(TOKEN)


class Behind:
    """Says who came through."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])
        principal = scope["state"].get("principal")
        workspace = None if principal is None else principal_of(scope).workspace or "*"
        await send_whole(send, 200, orjson.dumps({"workspace": workspace}))


@asynccontextmanager
async def gate(tokens: Tokens = TOKENS, **settings: Any) -> AsyncGenerator[tuple[Loopback, Behind]]:
    behind = Behind()
    async with served(Gate(behind, settings=Settings(**settings), tokens=tokens)) as loopback:
        yield loopback, behind


def bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_only_who_shows_a_good_token_is_known() -> None:
    known = list[bool]()

    async def behind(scope: Scope, _receive: Receive, send: Send) -> None:
        presence = presence_of(scope)
        assert presence is not None
        known.append(presence.is_known)
        await send_whole(send, 200, b"{}")

    gated = Gate(behind, settings=Settings(), tokens=TOKENS)
    async with served(gated) as loopback, loopback.client() as client:
        for path, headers in (("/healthz", bearer()), ("/v1/x", bearer("wrong")), ("/healthz", bearer())):
            await client.get(path, headers=headers)
        await client.get("/v1/x", headers=bearer())
    assert known == [False, False, True]


@pytest.mark.parametrize(
    "headers, workspace",
    [
        (bearer(), "*"),
        ({"Authorization": f"bearer {TOKEN}"}, "*"),
        (bearer(TOKENS.for_workspace("w1")), "w1"),
    ],
    ids=["operator", "lower-case scheme", "workspace"],
)
async def test_a_good_token_comes_in_as_who_it_is(headers: dict[str, str], workspace: str) -> None:
    async with gate() as (loopback, _), loopback.client(**headers) as client:
        answer = await client.post("/v1/anything")
    assert (answer.status_code, answer.json()) == (200, {"workspace": workspace})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong"),
        bearer(TOKEN + "x"),
        bearer(TOKEN.upper()),
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer"},
        bearer(TOKENS.for_workspace("w1").replace(".w1.", ".w2.")),
    ],
)
async def test_nothing_else_comes_in(headers: dict[str, str]) -> None:
    paths = ["/", "/agui", "/v1/workspaces", "/openapi.json", "/nowhere", "/healthz/x"]
    async with gate() as (loopback, behind), loopback.client(**headers) as client:
        answers = [await client.get(path) for path in paths]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"
    assert behind.paths == []


async def test_two_authorization_headers_are_none() -> None:
    request = (
        f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nAuthorization: Bearer x\r\n"
    )
    async with gate() as (loopback, _):
        answer = await loopback.raw(f"{request}Connection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 401 ")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_needs_no_token_but_a_good_host(path: str) -> None:
    async with gate() as (loopback, _), loopback.client() as client:
        assert (await client.get(path)).status_code == 200
        refused = await client.get(path, headers={"Host": "evil.example"})
    assert (refused.status_code, refused.json()["code"]) == (403, "host-refused")


async def test_an_open_daemon_takes_everybody_for_the_operator() -> None:
    async with gate(Tokens(None)) as (loopback, _), loopback.client() as client:
        assert (await client.get("/")).json() == {"workspace": "*"}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:3044", "localhost.evil.example"])
async def test_a_foreign_host_is_refused_before_the_token_is_looked_at(host: str) -> None:
    async with gate() as (loopback, behind), loopback.client(**bearer()) as client:
        answer = await client.post("/", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (403, "host-refused")
    assert behind.paths == []


@pytest.mark.parametrize(
    "hosts", [b"", b"Host: localhost\r\nHost: localhost\r\n", b"Host:\r\n"], ids=["none", "two", "empty"]
)
async def test_a_request_needs_exactly_one_host(hosts: bytes) -> None:
    async with gate() as (loopback, _):
        answer = await loopback.raw(b"GET /healthz HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "http://127.0.0.1:3044", "not an origin", ""]
)
async def test_a_foreign_origin_is_refused_and_never_reflected(origin: str) -> None:
    async with gate(allowed_origins=(ORIGIN,)) as (loopback, behind), loopback.client(**bearer()) as client:
        answer = await client.post("/", headers={"Origin": origin})
        preflight = await client.request(
            "OPTIONS", "/", headers={"Origin": origin, "Access-Control-Request-Method": "POST"}
        )
    for each in (answer, preflight):
        assert (each.status_code, each.json()["code"]) == (403, "origin-refused")
        assert not [name for name in each.headers if name.startswith("access-control")]
    assert behind.paths == []


async def test_a_request_without_an_origin_gets_no_cors() -> None:
    async with gate(allowed_origins=(ORIGIN,)) as (loopback, _), loopback.client(**bearer()) as client:
        answer = await client.get("/")
    assert not [name for name in answer.headers if name.startswith("access-control") or name == "vary"]


async def test_an_allowed_origin_may_ask_without_a_token_and_come_in_with_one() -> None:
    origin = {"Origin": ORIGIN}
    asked = {
        **origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    async with gate(allowed_origins=(ORIGIN,)) as (loopback, behind), loopback.client() as client:
        preflight = await client.request("OPTIONS", "/agui", headers=asked)
        refused = await client.post("/agui", headers=origin)
        answer = await client.post("/agui", headers={**origin, **bearer()})
    assert (preflight.status_code, preflight.content) == (204, b"")
    assert (
        preflight.headers["access-control-allow-headers"]
        == "authorization, content-type, accept, traceparent, tracestate"
    )
    assert preflight.headers["access-control-allow-methods"] == "GET, POST, PUT, DELETE"
    assert "access-control-allow-credentials" not in preflight.headers
    assert "access-control-allow-private-network" not in preflight.headers
    assert [preflight.status_code, refused.status_code, answer.status_code] == [204, 401, 200]
    for each in (preflight, refused, answer):
        assert (each.headers["access-control-allow-origin"], each.headers["vary"]) == (ORIGIN, "origin")
    assert behind.paths == ["/agui"]


async def test_an_allowed_origin_on_a_public_page_may_reach_the_private_network() -> None:
    headers = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Private-Network": "true",
    }
    async with gate(allowed_origins=(ORIGIN,)) as (loopback, _), loopback.client() as client:
        answer = await client.request("OPTIONS", "/", headers=headers)
    assert answer.headers["access-control-allow-private-network"] == "true"


async def test_a_preflight_without_an_origin_is_no_preflight() -> None:
    async with gate(allowed_origins=(ORIGIN,)) as (loopback, behind), loopback.client() as client:
        answer = await client.request("OPTIONS", "/", headers={"Access-Control-Request-Method": "POST"})
    assert (answer.status_code, behind.paths) == (401, [])


@pytest.mark.parametrize("name", ["a%2fb", "a%2Fb", "a%5cb", "a%00b", "%2e%2e%2fworkspaces"])
async def test_an_encoded_separator_is_no_separator(name: str) -> None:
    async with gate() as (loopback, behind), loopback.client(**bearer()) as client:
        answer = await client.get(f"/v1/workspaces/{name}/servers")
    assert (answer.status_code, answer.json()["type"]) == (404, "about:blank")
    assert behind.paths == []


BEACON = (
    b'{"kind": "workspace.mcp.attach", "server": {"name": "s", "transport": "stdio", "command": "/bin/sh"}}'
)
PAGE = {
    "form": ("POST", b"Origin: http://evil.example\r\nContent-Type: application/x-www-form-urlencoded\r\n"),
    "form as text": ("POST", b"Origin: http://evil.example\r\nContent-Type: text/plain\r\n"),
    "form of a sandboxed frame": ("POST", b"Origin: null\r\nContent-Type: text/plain\r\n"),
    "form without origin": ("POST", b"Sec-Fetch-Site: cross-site\r\nContent-Type: text/plain\r\n"),
    "beacon": ("POST", b"Origin: http://evil.example\r\nContent-Type: application/json\r\n"),
    "preflight": (
        "OPTIONS",
        (
            b"Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n"
            b"Access-Control-Request-Headers: content-type\r\nAccess-Control-Request-Private-Network: true\r\n"
        ),
    ),
    "image": ("GET", b"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n"),
    "page on another port": ("GET", b"Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n"),
    "frame": ("GET", b"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"),
    "two sites": ("GET", b"Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n"),
    "event source": ("GET", b"Origin: http://evil.example\r\nAccept: text/event-stream\r\n"),
    "web socket": (
        "GET",
        (
            b"Origin: http://evil.example\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        ),
    ),
}


@pytest.mark.parametrize("method, headers", PAGE.values(), ids=PAGE.keys())
async def test_no_request_that_a_foreign_page_can_make_gets_past_an_open_daemon(
    method: str, headers: bytes
) -> None:
    head = f"{method} /v1/workspaces/w/servers HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode() + headers
    body = BEACON if method == "POST" else b""
    length = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
    async with gate(Tokens(None)) as (loopback, behind):
        answer = await loopback.raw(head + length + body)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"access-control" not in answer.lower()
    assert behind.paths == []


@pytest.mark.parametrize("site", ["none", "same-origin"])
async def test_a_browser_that_a_person_or_our_own_page_sends_comes_in(site: str) -> None:
    async with gate(Tokens(None)) as (loopback, behind), loopback.client() as client:
        answer = await client.get("/metrics", headers={"Sec-Fetch-Site": site})
    assert (answer.status_code, behind.paths) == (200, ["/metrics"])


async def test_a_websocket_is_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    await Gate(Behind(), settings=Settings(), tokens=TOKENS)(
        {"type": "websocket", "headers": []}, receive, send
    )
    assert sent == [{"type": "websocket.close", "code": 1008}]
