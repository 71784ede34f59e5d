"""http_exchange.py: what a head is, and which connections carry no request."""

import pytest
from anyio.lowlevel import checkpoint
from multidict import CIMultiDict
from yarl import URL

from app.connections.http_exchange import COMMON_MAX
from app.connections.http_pool import HttpPool
from app.connections.http_request import HeaderLines
from app.core.answers import AnswerLost
from app.settings import Settings
from tests.support.http_way import OK, transport_to, value
from tests.support.scripted_http import scripted_http


def head_at(
    url: str, headers: dict[str, str], own: dict[str, str], environment: dict[str, str] | None = None
) -> list[str]:
    pool = HttpPool(Settings.from_environment(environment or {}))
    place = pool.place(URL(url), CIMultiDict(headers))
    return place.head(HeaderLines.of(own), 7).decode().split("\r\n")


@pytest.mark.spec("connection")
async def test_what_a_request_names_itself_replaces_what_every_request_has() -> None:
    first, *lines, end, body = head_at(
        "http://h:1/mcp?a=%C3%A9#f", {"X-Key": "ž", "Mcp-Name": "of the definition"}, {"mcp-name": "t"}
    )
    assert (first, end, body) == ("POST /mcp?a=%C3%A9 HTTP/1.1", "", "")
    names = [line.partition(":")[0].lower() for line in lines]
    assert len(set(names)) == len(names)
    assert {"content-length: 7", "host: h:1", "mcp-name: t", "x-key: ž"} <= {line.lower() for line in lines}


@pytest.mark.spec("connection")
async def test_a_proxy_is_asked_for_the_whole_url_but_of_a_tunnel_for_the_path() -> None:
    proxied = {"PLURNK_HTTP_PROXY": "http://proxy:3128"}
    assert head_at("http://h/mcp?a", {}, {}, proxied)[0] == "POST http://h/mcp?a HTTP/1.1"
    assert head_at("https://h/mcp?a", {}, {}, proxied)[0] == "POST /mcp?a HTTP/1.1"


@pytest.mark.spec("connection")
@pytest.mark.parametrize("value", ["a\r\nX: b", "a\nb", "a\rb", "a\0b"])
async def test_a_header_cannot_break_out_of_its_line(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        head_at("http://h/mcp", {}, {"Authorization": value})
    with pytest.raises(ValueError, match="line break"):
        head_at("http://h/mcp", {"X-Key": value}, {})


@pytest.mark.spec("connection")
async def test_what_a_place_remembers_is_bounded_and_right() -> None:
    place = HttpPool(Settings()).place(URL("http://h/mcp"), CIMultiDict({"X-1": "ours"}))
    for turn in range(2):
        for number in range(2 * COMMON_MAX):
            head = place.head(HeaderLines.of({f"x-{number}": "theirs"}), turn)
            assert head.count(b"\r\nX-1: ours\r\n") == (number != 1)
            assert head.endswith(b"\r\nx-%d: theirs\r\nContent-Length: %d\r\n\r\n" % (number, turn))
    assert len(place._common) <= COMMON_MAX


@pytest.mark.spec("connection")
async def test_a_pooled_connection_that_the_server_closed_is_never_used_for_a_request() -> None:
    async with scripted_http() as peer, transport_to(peer) as transport:
        for _ in range(20):
            assert value(await transport.request("tools/call", {"name": "echo"})) == OK
            peer.drop_connections()
            await checkpoint()  # The peer is on this very loop and closes at its next turn.
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
