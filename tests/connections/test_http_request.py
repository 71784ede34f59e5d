"""http_request.py: what is sent, to whom it is not sent, and that it is never sent twice."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from yarl import URL

from app.connections.http_pool import HttpPool
from app.connections.http_request import (
    REMEMBERED_LENGTH_MAX,
    REMEMBERED_MAX,
    Remembered,
    request_headers,
)
from app.connections.streamable_http import StreamableHttpTransport
from app.core.answers import (
    Answer,
    HttpRefusal,
    RequestNotSent,
    Result,
)
from app.core.json_value import JsonObject
from app.settings import Settings
from tests.support.http_way import LIMIT, OK, transport_to, value
from tests.support.scripted_http import (
    Reply,
    result,
    scripted_http,
    text_result,
)


@pytest.mark.spec("connection")
async def test_a_request_is_one_post_with_the_headers_that_mirror_its_body() -> None:
    schema = {
        "type": "object",
        "properties": {
            "area": {"type": "string", "x-mcp-header": "area"},
            "n": {"type": "integer", "x-mcp-header": "Num"},
            "skip": {"type": "boolean", "x-mcp-header": "Skip"},
        },
    }
    arguments: JsonObject = {"area": "Žluť", "n": 42, "skip": None}
    async with (
        scripted_http() as peer,
        transport_to(peer, headers={"X-Key": "k", "authorization": "Bearer t"}) as transport,
    ):
        await transport.request(
            "tools/call",
            {"name": "doc_put", "arguments": arguments},
            input_schema=json.dumps(schema).encode(),
        )
        [seen] = peer.seen
    assert seen.path == "/mcp"
    assert seen.params["arguments"] == arguments
    assert seen.headers["content-type"] == "application/json"
    assert {media.strip() for media in seen.headers["accept"].split(",")} == {
        "application/json",
        "text/event-stream",
    }
    assert seen.headers["mcp-protocol-version"] == "2026-07-28"
    assert seen.headers["mcp-method"] == "tools/call"
    assert seen.headers["mcp-name"] == "doc_put"
    assert dict(seen.raw_headers)["Mcp-Param-area"] == "=?base64?xb1sdcWl?="
    assert dict(seen.raw_headers)["Mcp-Param-Num"] == "42"
    assert "mcp-param-skip" not in seen.headers
    assert seen.headers["x-key"] == "k"
    assert seen.headers["authorization"] == "Bearer t"
    assert seen.headers["user-agent"].startswith("plurnk-mcpd/")
    assert "cookie" not in seen.headers
    assert "mcp-session-id" not in seen.headers


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "method, params, name",
    [
        ("tools/call", {"name": "検索"}, "=?base64?5qSc57Si?="),
        ("tools/call", {"name": " pad "}, "=?base64?IHBhZCA=?="),
        ("tools/call", {"name": "=?base64?dGVzdA==?="}, "=?base64?PT9iYXNlNjQ/ZEdWemRBPT0/PQ==?="),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "a://b?c#d"}, "a://b?c#d"),
        ("tasks/get", {"taskId": "t1"}, "t1"),
        ("tools/list", {"cursor": ""}, None),
        ("server/discover", {}, None),
    ],
)
async def test_the_name_header_is_the_tool_prompt_uri_or_task(
    method: str, params: dict[str, Any], name: str | None
) -> None:
    async with scripted_http({method: text_result("ok")}) as peer, transport_to(peer) as transport:
        await transport.request(method, params)
        assert peer.seen[0].headers.get("mcp-name") == name
        assert peer.seen[0].headers["mcp-method"] == method


@pytest.mark.spec("connection")
@pytest.mark.spec("revision")
async def test_neither_cookie_nor_session_is_sent_back_and_ids_are_never_used_twice() -> None:
    reply = result({"content": []}, headers={"Set-Cookie": "session=1; Path=/", "Mcp-Session-Id": "s-1"})
    async with scripted_http({"tools/call": reply}) as peer:
        # A jar keeps nothing of a bare address anyway.
        peer.origin = peer.origin.replace("127.0.0.1", "localhost")
        async with transport_to(peer) as transport:
            for _ in range(3):
                await transport.request("tools/call", {"name": "echo"})
        assert [seen.headers.keys() & {"cookie", "mcp-session-id"} for seen in peer.seen] == [set()] * 3
        assert len({seen.message["id"] for seen in peer.seen}) == 3
        assert peer.connections == 1


@pytest.mark.spec("connection")
async def test_ambient_proxies_are_not_used_and_an_ipv6_literal_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with scripted_http(host="::1") as peer, transport_to(peer) as transport:
        assert value(await transport.request("tools/call", {"name": "echo"})) == OK
        assert peer.seen[0].headers["host"] == peer.origin.removeprefix("http://")


@pytest.mark.spec("connection")
async def test_the_configured_proxy_is_used() -> None:
    async with scripted_http() as proxy:
        settings = Settings(http_proxy=proxy.origin)
        pool = HttpPool(settings)
        transport = StreamableHttpTransport(pool, URL("http://mcp.invalid/mcp"), {}, message_max=LIMIT)
        assert value(await transport.request("tools/call", {"name": "echo"})) == OK
        assert proxy.seen[0].path == "http://mcp.invalid/mcp"
        await pool.close()


@pytest.mark.spec("connection")
async def test_a_connection_that_is_refused_or_a_name_without_address_was_not_sent() -> None:
    async with scripted_http() as peer:
        url = peer.url
    pool = HttpPool(Settings())
    for each in (url, "http://does-not-exist.invalid/mcp", url.replace("http:", "https:")):
        transport = StreamableHttpTransport(pool, URL(each), {}, message_max=LIMIT)
        with pytest.raises(RequestNotSent) as raised:
            await transport.request("tools/call", {"name": "echo"})
        assert each not in raised.value.reason
    await pool.close()
    with pytest.raises(RequestNotSent):
        await transport.request("tools/call", {"name": "echo"})


class Noting:
    """An authorization that shows a header and notes who answered what."""

    def __init__(self, sends: int, then: Callable[[], None] = lambda: None) -> None:
        self.sends = sends
        self.then = then
        self.noted: list[tuple[type[Answer], str | None]] = []

    async def header(self) -> str | None:
        """Show how often it was asked."""
        return f"Bearer {len(self.noted)}" if self.noted else None

    async def judged(self, answer: Answer, peer: str | None) -> Answer | None:
        """Let the request go again until it was sent so often."""
        self.noted.append((type(answer), peer))
        self.then()
        return answer if len(self.noted) == self.sends else None


def authorized(pool: HttpPool, url: str, authorization: Noting) -> StreamableHttpTransport:
    return StreamableHttpTransport(pool, URL(url), {}, message_max=LIMIT, authorize=lambda: authorization)


@pytest.mark.spec("oauth")
async def test_a_refused_request_goes_again_as_a_new_one_and_who_refused_is_known() -> None:
    replies = [Reply(401), Reply(403, {"WWW-Authenticate": "Bearer"}), text_result("ok")]
    async with scripted_http({"tools/call": replies}) as peer:
        noting, pool = Noting(sends=3), HttpPool(Settings())
        assert value(await authorized(pool, peer.url, noting).request("tools/call", {"name": "echo"})) == OK
        shown = [seen.headers.get("authorization") for seen in peer.seen]
        assert shown == [None, "Bearer 1", "Bearer 2"]
        assert len({seen.message["id"] for seen in peer.seen}) == 3
        assert noting.noted == [(kind, "127.0.0.1") for kind in (HttpRefusal, HttpRefusal, Result)]
        await pool.close()


@pytest.mark.spec("oauth")
async def test_nothing_goes_again_once_the_close_has_begun() -> None:
    async with scripted_http({"tools/call": Reply(401)}) as peer:
        pool = HttpPool(Settings())
        noting = Noting(sends=2)
        transport = authorized(pool, peer.url, noting)
        noting.then = transport.begin_close
        with pytest.raises(RequestNotSent):
            await transport.request("tools/call", {"name": "echo"})
        assert len(peer.seen) == 1
        await pool.close()


@pytest.mark.spec("oauth")
async def test_a_proxy_is_not_taken_for_who_answered() -> None:
    async with scripted_http() as proxy:
        noting, pool = Noting(sends=1), HttpPool(Settings(http_proxy=proxy.origin))
        transport = authorized(pool, "http://mcp.invalid/mcp", noting)
        assert value(await transport.request("tools/call", {"name": "echo"})) == OK
        assert noting.noted == [(Result, None)]
        await pool.close()


def test_the_headers_of_a_name_are_rendered_once_and_of_so_many_names_kept() -> None:
    remembered: Remembered = {}
    for number in range(REMEMBERED_MAX + 8):
        lines = request_headers("tools/call", {"name": f"t{number}"}, None, remembered)
        assert lines.text == f"Mcp-Method: tools/call\r\nMcp-Name: t{number}\r\n"
    assert len(remembered) == REMEMBERED_MAX
    assert request_headers("tools/call", {"name": "t1"}, None, remembered) is remembered["tools/call", "t1"]
    assert request_headers("prompts/get", {"name": "t1"}, None, remembered).text.startswith(
        "Mcp-Method: prom"
    )


def test_a_long_name_is_not_remembered_and_a_request_without_one_has_no_name() -> None:
    remembered: Remembered = {}
    long = "x" * (REMEMBERED_LENGTH_MAX + 1)
    assert long in request_headers("resources/read", {"uri": long}, None, remembered).text
    assert request_headers("tools/list", {"name": "t"}, None, remembered).names == {"mcp-method"}
    assert not remembered
