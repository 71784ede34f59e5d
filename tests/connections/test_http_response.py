"""http_response.py: every way an HTTP answer can come, be cut, lead elsewhere or be too large.

The peer is hand-written bytes: no good server produces most of these.
"""

import gzip
import json
import zlib
from collections.abc import Callable

import anyio
import pytest

from app.core.answers import (
    AnswerLost,
    AnswerMalformed,
    AnswerTooLarge,
    HttpRefusal,
    RemoteError,
)
from tests.support.http_way import LIMIT, OK, answer_to, transport_to, value
from tests.support.scripted_http import (
    HANG,
    Reply,
    error,
    event,
    json_reply,
    progress_event,
    response_event,
    scripted_http,
    stream,
    text_result,
)


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


@pytest.mark.spec("connection")
@pytest.mark.parametrize("is_answered", [False, True])
async def test_others_have_their_turn_while_a_stream_of_nothing_is_decoded(is_answered: bool) -> None:
    answer = (response_event().replace("$id", "1") if is_answered else "").encode()
    body = gzip.compress(answer + b"data:\n\n" * 1_000_000, 1)
    reply = Reply(headers={"Content-Type": "text/event-stream", "Content-Encoding": "gzip"}, body=body)
    turns, is_over = 0, False

    async def count() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await anyio.sleep(0.001)

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        if is_answered:
            assert value(await answer_to(reply)) == OK
        else:
            with pytest.raises(AnswerLost):
                await answer_to(reply)
            assert turns > 100
        is_over = True


@pytest.mark.spec("connection")
@pytest.mark.parametrize("status", [302, 404, 503])
@pytest.mark.parametrize("begun", [(), ("{",)], ids=["nothing", "something"])
async def test_a_refusing_status_settles_its_request_although_its_body_never_ends(
    status: int, begun: tuple[str, ...]
) -> None:
    headers = {"Content-Type": "application/json"}
    assert await answer_to(Reply(status, headers, chunks=(*begun, HANG))) == HttpRefusal(status)


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


async def test_a_redirect_is_followed_over_another_connection_where_the_server_closed_its() -> None:
    async with (
        scripted_http(routes={"/mcp": Reply(307, {"Location": "/mcp/"})}) as peer,
        transport_to(peer) as transport,
    ):
        peer.idle_close = True
        assert value(await transport.request("tools/call", {"name": "echo"})) == OK
        assert [seen.path for seen in peer.seen] == ["/mcp", "/mcp/"]


async def test_a_redirect_loop_ends() -> None:
    async with (
        scripted_http(routes={"/mcp": Reply(307, {"Location": "/mcp"})}) as peer,
        transport_to(peer) as transport,
    ):
        assert await transport.request("tools/call", {"name": "echo"}) == HttpRefusal(307)
        assert len(peer.seen) == 4
