"""streamable_http.py: one POST a request; every way an answer can come, be cut, or not come at all.

The peer is hand-written bytes: no good server produces most of these.
"""

import gzip
import json
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from yarl import URL

from app.connections.http_pool import HttpPool
from app.connections.streamable_http import StreamableHttpTransport
from app.connections.transport import Diagnostics
from app.core.answers import (
    Answer,
    AnswerLost,
    AnswerMalformed,
    AnswerTooLarge,
    HttpRefusal,
    Progress,
    RemoteError,
    RequestFault,
    RequestNotSent,
    Result,
)
from app.core.json_value import JsonObject
from app.settings import Settings
from tests.support.scripted_http import (
    FRESH,
    HANG,
    PAUSE,
    Reply,
    Script,
    ScriptedHttp,
    Seen,
    error,
    event,
    json_reply,
    progress_event,
    response_event,
    result,
    scripted_http,
    stream,
    text_result,
)

OK = {**FRESH, "content": [{"type": "text", "text": "ok"}]}
LIMIT = 100_000


@asynccontextmanager
async def transport_to(
    peer: ScriptedHttp, *, headers: dict[str, str] | None = None, settings: Settings | None = None
) -> AsyncGenerator[StreamableHttpTransport]:
    pool = HttpPool(settings or Settings())
    transport = StreamableHttpTransport(pool, URL(peer.url), headers or {}, message_max=LIMIT)
    try:
        with anyio.fail_after(20):
            yield transport
    finally:
        await transport.close()
        await pool.close()


async def answer_to(script: Script, **arguments: Any) -> Answer:
    """Return what a tool call gets from a peer that answers it like this."""
    async with scripted_http({"tools/call": script}) as peer, transport_to(peer) as transport:
        return await transport.request("tools/call", {"name": "echo", "arguments": {}}, **arguments)


def value(answer: Answer) -> Any:
    assert isinstance(answer, Result)
    return answer.value


# What is sent


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
async def test_a_cookie_is_never_sent_back_and_ids_are_never_used_twice() -> None:
    reply = result({"content": []}, headers={"Set-Cookie": "session=1; Path=/"})
    async with scripted_http({"tools/call": reply}) as peer:
        # A jar keeps nothing of a bare address anyway.
        peer.origin = peer.origin.replace("127.0.0.1", "localhost")
        async with transport_to(peer) as transport:
            for _ in range(3):
                await transport.request("tools/call", {"name": "echo"})
        assert [seen.headers.get("cookie") for seen in peer.seen] == [None] * 3
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


# Answers


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "content_type",
    ["application/json", "Application/JSON; Charset=UTF-8", "application/json;charset=latin-1", ""],
)
async def test_json_answers_whatever_the_spelling_of_their_media_type(content_type: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": "ID", "result": OK}).replace('"ID"', "$id")
    headers = {"Content-Type": content_type} if content_type else {}
    assert value(await answer_to(Reply(headers=headers, body=body))) == OK


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "reply",
    [
        stream(response_event()),
        stream(response_event().replace("\n", "\r\n")),
        stream(response_event().replace("\n", "\r")),
        stream("\ufeff: hello\n\nevent: message\n", response_event()),
        stream('data: {"jsonrpc":"2.0","id":$id,\n', f'data:"result":{json.dumps(OK)}}}\n\n'),
        stream(response_event(), HANG),
        Reply(headers={"Content-Type": "TEXT/Event-Stream;charset=utf-8"}, chunks=[response_event()]),
        stream(event({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}), response_event()),
        stream("data: not json\n\n", "data: []\n\n", "event: ping\ndata: 1\n\n", response_event()),
        stream(event({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}), response_event()),
    ],
)
async def test_stream_answers_by_the_grammar_whatever_else_is_on_the_stream(reply: Reply) -> None:
    assert value(await answer_to(reply)) == OK


@pytest.mark.spec("connection")
async def test_characters_survive_a_cut_at_every_byte() -> None:
    text = "Žluť 月 🦄"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"t": text}}, ensure_ascii=False)
    data = f"data: {body}\n\n".encode()
    chunks = [data[index : index + 1] for index in range(len(data))]
    assert value(await answer_to(stream(*chunks))) == {"t": text}


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "encoding, encode", [("gzip", gzip.compress), ("deflate", zlib.compress)], ids=["gzip", "deflate"]
)
async def test_encoded_answers(encoding: str, encode: Callable[[bytes], bytes]) -> None:
    body = encode(json.dumps({"jsonrpc": "2.0", "id": 1, "result": OK}).encode())
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    assert value(await answer_to(Reply(headers=headers, body=body))) == OK


@pytest.mark.spec("connection")
async def test_a_json_rpc_error_is_kept_as_the_peer_sent_it() -> None:
    assert await answer_to(error(-32602, "no such prompt", status=400, data={"k": 1})) == RemoteError(
        -32602, "no such prompt", {"k": 1}, http_status=400
    )
    assert await answer_to(error(-32603, "broken")) == RemoteError(-32603, "broken")


@pytest.mark.parametrize("identifier", [None, "server-error", 999])
async def test_an_error_with_a_refusing_status_answers_the_request_whatever_its_id(
    identifier: object,
) -> None:
    body = {"jsonrpc": "2.0", "id": identifier, "error": {"code": -32000, "message": "session"}}
    assert await answer_to(json_reply(body, 400)) == RemoteError(-32000, "session", http_status=400)


async def test_an_error_without_an_id_answers_the_request_it_came_for() -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "id absent"}}
    assert await answer_to(json_reply(body)) == RemoteError(-32600, "id absent")


@pytest.mark.spec("connection")
@pytest.mark.parametrize("status", [404, 405, 429, 500, 503])
@pytest.mark.parametrize(
    "headers, body",
    [
        ({"Content-Type": "text/html"}, "<html>no</html>"),
        ({"Content-Type": "application/json"}, '{"error":"invalid_token"}'),
        ({"Content-Type": "application/json"}, '{"jsonrpc":"2.0","id":1,"result":{}}'),
        ({"Content-Type": "application/json"}, "x" * (LIMIT + 1)),
        ({"Content-Type": "text/event-stream"}, ": never looked at"),
        ({}, ""),
    ],
    ids=["html", "oauth", "result", "huge", "stream", "empty"],
)
async def test_a_refusing_status_settles_its_request_at_once(
    status: int, headers: dict[str, str], body: str
) -> None:
    assert await answer_to(Reply(status, headers, body)) == HttpRefusal(status)


@pytest.mark.spec("revision")
@pytest.mark.parametrize(
    "challenge, is_bearer",
    [
        ('Bearer resource_metadata="https://a.example/x"', True),
        ("bearer", True),
        ('Basic realm="x", Bearer scope="a b"', True),
        ('Basic realm="x, Bearer y"', False),
        ("Bearertoken", False),
        ("Negotiate", False),
    ],
)
async def test_a_bearer_challenge_is_found_among_others(challenge: str, is_bearer: bool) -> None:
    reply = Reply(401, {"WWW-Authenticate": challenge, "Content-Type": "application/json"}, "{}")
    assert await answer_to(reply) == HttpRefusal(401, challenge if is_bearer else None)


async def test_a_challenge_is_not_hidden_by_a_json_rpc_body() -> None:
    body = {"jsonrpc": "2.0", "id": "$id", "error": {"code": -32001, "message": "no"}}
    challenge = {"WWW-Authenticate": 'Bearer error="insufficient_scope"'}
    assert await answer_to(json_reply(body, 403, headers=challenge)) == HttpRefusal(
        403, 'Bearer error="insufficient_scope"'
    )
    assert await answer_to(json_reply(body, 403)) == RemoteError(-32001, "no", http_status=403)


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "reply",
    [
        json_reply({"jsonrpc": "2.0", "id": "1", "result": OK}),
        json_reply({"jsonrpc": "2.0", "id": 1.0, "result": OK}),
        json_reply({"jsonrpc": "2.0", "id": True, "result": OK}),
        json_reply({"jsonrpc": "2.0", "id": 99, "result": OK}),
        json_reply({"jsonrpc": "2.0", "id": "1", "error": {"code": 1, "message": "m"}}),
        json_reply({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}),
        json_reply({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        json_reply([{"jsonrpc": "2.0", "id": "$id", "result": OK}]),
        json_reply({"jsonrpc": "2.0", "id": "$id", "result": []}),
        Reply(headers={"Content-Type": "application/json"}, body=b"\x00"),
        Reply(headers={"Content-Type": "text/html"}, body="<html>"),
        Reply(202),
        Reply(204),
        stream(event({"jsonrpc": "2.0", "id": "1", "result": OK}), HANG),
        stream(event({"jsonrpc": "2.0", "id": "$id", "result": []}), HANG),
        stream('data: {"jsonrpc":"2.0","id":$id,"result":{"n":NaN}}\n\n', HANG),
    ],
)
async def test_what_is_no_answer_to_this_request_fails_it_at_once(reply: Reply) -> None:
    with pytest.raises(AnswerMalformed):
        await answer_to(reply)


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "reply",
    [
        stream(progress_event(1)),
        stream(),
        stream("data: {"),
        stream(response_event().rstrip("\n") + "\n"),
        stream(response_event()[:20], then="close"),
        stream(progress_event(1), then="reset"),
        Reply(headers={"Content-Type": "application/json", "Content-Length": "99"}, body="{", then="close"),
        Reply(raw=[], then="close"),
        Reply(raw=[], then="reset"),
        Reply(raw=["HTTP/1.1 200 OK\r\nContent-Le"], then="close"),
        Reply(raw=["SSH-2.0-OpenSSH_9\r\n\r\n"], then="close"),
        Reply(headers={"Content-Type": "application/json", "Content-Encoding": "gzip"}, body=b"no gzip"),
    ],
)
async def test_an_answer_that_is_cut_is_lost_at_once_and_not_asked_for_again(reply: Reply) -> None:
    async with scripted_http({"tools/call": reply}) as peer, transport_to(peer) as transport:
        with pytest.raises(AnswerLost):
            await transport.request("tools/call", {"name": "echo"})
        assert len(peer.of("tools/call")) == 1


# Progress


@pytest.mark.spec("calls")
async def test_progress_under_our_token_reaches_the_caller_before_the_answer() -> None:
    seen: list[Progress] = []
    chunks = [progress_event(1, total=2), progress_event(5, token="srv-made"), progress_event(2, token='"1"')]
    reply = stream(*chunks, progress_event(2, total=2), response_event())
    async with scripted_http({"tools/call": reply}) as peer, transport_to(peer) as transport:
        await transport.request("tools/call", {"name": "echo"}, on_progress=seen.append)
        assert peer.seen[0].params["_meta"]["progressToken"] == peer.seen[0].message["id"]
        assert transport.diagnostics == Diagnostics(ignored_progress=2)
    assert seen == [Progress(1.0, 2.0), Progress(2.0, 2.0)]


async def test_no_token_is_sent_where_nobody_listens() -> None:
    async with (
        scripted_http({"tools/call": stream(progress_event(1), response_event())}) as peer,
        transport_to(peer) as transport,
    ):
        await transport.request("tools/call", {"name": "echo"})
        assert "progressToken" not in peer.seen[0].params["_meta"]
        assert transport.diagnostics.ignored_progress == 1


# Limits


@pytest.mark.spec("limits")
@pytest.mark.parametrize(
    "reply",
    [
        text_result("x" * LIMIT),
        stream(response_event({"t": "x" * LIMIT})),
        stream("data: " + "x" * (LIMIT + 100), HANG),
        Reply(
            headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
            body=gzip.compress(b" " * 2**26, 9),
        ),
        Reply(
            headers={"Content-Type": "text/event-stream", "Content-Encoding": "deflate"},
            body=zlib.compress(b"x" * 2**26, 9),
        ),
    ],
    ids=["json", "event", "line", "gzip-bomb", "deflate-bomb"],
)
async def test_an_answer_over_the_message_limit_is_refused_without_being_read_whole(reply: Reply) -> None:
    with pytest.raises(AnswerTooLarge) as raised:
        await answer_to(reply)
    assert raised.value.limit == LIMIT


@pytest.mark.spec("limits")
async def test_a_stream_may_be_longer_than_a_message() -> None:
    filler = ": " + "x" * 1000 + "\n\n"
    assert value(await answer_to(stream(*[filler] * (2 * LIMIT // 1000), response_event()))) == OK


@pytest.mark.spec("connection")
async def test_a_large_request_body_arrives_whole() -> None:
    async with scripted_http() as peer, transport_to(peer) as transport:
        await transport.request("tools/call", {"name": "echo", "arguments": {"t": "x" * 3_000_000}})
        assert len(peer.seen[0].params["arguments"]["t"]) == 3_000_000


# Redirects


@pytest.mark.spec("connection")
@pytest.mark.parametrize("status", [307, 308])
async def test_a_same_origin_redirect_keeps_method_body_and_headers(status: int) -> None:
    async with (
        scripted_http(routes={"/mcp": Reply(status, {"Location": "/mcp/"})}) as peer,
        transport_to(peer, headers={"Authorization": "Bearer t"}) as transport,
    ):
        assert value(await transport.request("tools/call", {"name": "echo"})) == OK
        first, second = peer.seen
    assert (first.path, second.path) == ("/mcp", "/mcp/")
    assert first.body == second.body
    assert first.headers == second.headers
    assert second.headers["authorization"] == "Bearer t"


@pytest.mark.spec("connection")
async def test_nothing_is_sent_to_another_origin() -> None:
    async with scripted_http() as other:
        for location in (f"{other.origin}/steal", other.url.replace("http:", "https:"), "//evil.invalid/"):
            redirect = Reply(307, {"Location": location})
            assert await answer_to(redirect) == HttpRefusal(307)
        assert other.connections == 0


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "reply",
    [
        Reply(301, {"Location": "/mcp/"}),
        Reply(302, {"Location": "/mcp/"}),
        Reply(303, {"Location": "/mcp/"}),
        Reply(307),
        Reply(307, {"Location": "http://[bad/"}),
        Reply(307, {"Location": "mailto:a@b"}),
        Reply(307, {"Location": "http://user@127.0.0.1/"}),
    ],
)
async def test_other_redirects_are_not_followed(reply: Reply) -> None:
    async with (
        scripted_http(routes={"/mcp": reply}) as peer,
        transport_to(peer) as transport,
    ):
        assert await transport.request("tools/call", {"name": "echo"}) == HttpRefusal(reply.status)
        assert len(peer.seen) == 1


async def test_a_redirect_loop_ends() -> None:
    async with (
        scripted_http(routes={"/mcp": Reply(307, {"Location": "/mcp"})}) as peer,
        transport_to(peer) as transport,
    ):
        assert await transport.request("tools/call", {"name": "echo"}) == HttpRefusal(307)
        assert len(peer.seen) == 4


# What is not sent, and what is lost


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


@pytest.mark.spec("connection")
async def test_a_pooled_connection_that_the_server_closed_is_never_used_for_a_request() -> None:
    async with scripted_http() as peer, transport_to(peer) as transport:
        for _ in range(20):
            assert value(await transport.request("tools/call", {"name": "echo"})) == OK
            peer.drop_connections()
        assert len(peer.of("tools/call")) == 20


@pytest.mark.spec("calls")
async def test_a_server_that_closes_behind_each_answer_gets_every_request_at_most_once() -> None:
    async with scripted_http() as peer, transport_to(peer) as transport:
        peer.idle_close = True
        settled = 0
        for number in range(50):
            try:
                await transport.request("tools/call", {"name": "echo", "arguments": {"n": number}})
                settled += 1
            except AnswerLost:
                pass
        calls = [seen.params["arguments"]["n"] for seen in peer.of("tools/call")]
    assert len(calls) == len(set(calls))
    assert settled <= len(calls)
    assert settled > 0


# Cancelling and closing


@asynccontextmanager
async def hanging_call(
    reply: Reply,
) -> AsyncGenerator[tuple[ScriptedHttp, StreamableHttpTransport, anyio.CancelScope, list[object]]]:
    """Give a call that waits for its answer; its outcome is appended once it has one."""
    outcome: list[object] = []
    scope = anyio.CancelScope()
    async with scripted_http({"tools/call": reply}) as peer, transport_to(peer) as transport:

        async def call() -> None:
            try:
                with scope:
                    outcome.append(await transport.request("tools/call", {"name": "echo"}))
                if scope.cancelled_caught:
                    outcome.append("cancelled")
            except RequestFault as fault:
                outcome.append(type(fault))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await peer.has_seen(1)
            yield peer, transport, scope, outcome


HANGING = pytest.mark.parametrize(
    "reply", [stream(": open\n\n", HANG), Reply(raw=[HANG]), stream(progress_event(1), HANG)]
)


@pytest.mark.spec("calls")
@HANGING
async def test_cancelling_the_caller_closes_the_connection(reply: Reply) -> None:
    async with hanging_call(reply) as (peer, _, scope, outcome):
        scope.cancel()
        await peer.seen[0].gone.wait()
    assert outcome == ["cancelled"]


@pytest.mark.spec("connection")
@HANGING
async def test_closing_ends_the_requests_in_flight_and_refuses_later_ones(reply: Reply) -> None:
    async with hanging_call(reply) as (peer, transport, _, outcome):
        assert await transport.close() is None
        assert outcome == [AnswerLost]
        await peer.seen[0].gone.wait()
        with pytest.raises(RequestNotSent):
            await transport.request("tools/call", {"name": "echo"})
        assert await transport.close() is None


@pytest.mark.spec("connection")
async def test_one_failing_request_never_harms_another() -> None:
    gate = anyio.Event()
    replies = [
        Reply(raw=[], then="reset"),
        Reply(500),
        stream(": wait\n\n", gate, progress_event(1), then="close"),
        stream(": wait\n\n", gate, response_event()),
    ]
    expected: list[object] = [AnswerLost, HttpRefusal(500), AnswerLost, Result]
    outcomes: list[object] = [None] * 16

    def script(seen: Seen) -> Reply:
        return replies[seen.params["arguments"]["n"] % 4]

    async with scripted_http({"tools/call": script}) as peer, transport_to(peer) as transport:

        async def call(number: int) -> None:
            try:
                answer = await transport.request("tools/call", {"arguments": {"n": number}})
                outcomes[number] = Result if isinstance(answer, Result) else answer
            except RequestFault as fault:
                outcomes[number] = type(fault)

        async with anyio.create_task_group() as group:
            for number in range(16):
                group.start_soon(call, number)
            await peer.has_seen(16)
            gate.set()
    assert outcomes == expected * 4


@pytest.mark.spec("connection")
async def test_a_stream_that_ends_after_its_answer_leaves_its_connection_to_the_next_request() -> None:
    async with (
        scripted_http({"tools/call": stream(response_event(), PAUSE)}) as peer,
        transport_to(peer) as transport,
    ):
        for _ in range(5):
            await transport.request("tools/call", {"name": "echo"})
        assert peer.connections == 1


async def test_a_quiet_stream_is_ended_by_nobody_but_the_caller() -> None:
    gate = anyio.Event()
    reply = stream(": open\n\n", gate, response_event())
    results: list[Answer] = []
    async with scripted_http({"tools/call": reply}) as peer, transport_to(peer) as transport:

        async def call() -> None:
            results.append(await transport.request("tools/call", {"name": "echo"}))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await peer.has_seen(1)
            await transport.request("server/discover", {})
            assert results == []
            gate.set()
    assert value(results[0]) == OK
