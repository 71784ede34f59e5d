"""http_pool.py: TLS, proxies and the address rule, on real sockets."""

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict
from yarl import URL

from app.connections.address_rule import AddressNotAllowedError
from app.connections.http_pool import KEEPALIVE_PROBES, HttpPool, probed_socket
from app.connections.streamable_http import StreamableHttpTransport
from app.connections.transport import AddressNotSent
from app.core.answers import RequestNotSent, Result
from app.core.json_value import JsonObject
from app.settings import Settings
from tests.support.certificates import server_tls
from tests.support.scripted_http import scripted_http

CALL: tuple[str, JsonObject] = ("tools/call", {"name": "echo"})


@asynccontextmanager
async def pool_with(**settings: object) -> AsyncGenerator[HttpPool]:
    pool = HttpPool(Settings.model_validate(settings))
    try:
        yield pool
    finally:
        await pool.close()


def transport(pool: HttpPool, url: str) -> StreamableHttpTransport:
    return StreamableHttpTransport(pool, URL(url), {}, message_max=1000)


@pytest.mark.spec("connection")
async def test_a_certificate_of_nobody_we_know_is_named_and_nothing_is_sent(tmp_path: Path) -> None:
    context, _ = server_tls(tmp_path)
    async with scripted_http(tls=context) as peer, pool_with() as pool:
        with pytest.raises(RequestNotSent) as raised:
            await transport(pool, peer.url).request(*CALL)
        assert raised.value.reason == "certificate verification failed"
        assert peer.seen == []


@pytest.mark.spec("connection")
async def test_the_ca_file_adds_roots_and_names_are_still_checked(tmp_path: Path) -> None:
    context, file = server_tls(tmp_path)
    async with scripted_http(tls=context) as peer, pool_with(ca_file=str(file)) as pool:
        assert isinstance(await transport(pool, peer.url).request(*CALL), Result)
        with pytest.raises(RequestNotSent):
            await transport(pool, peer.url.replace("127.0.0.1", "localhost")).request(*CALL)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_ca_file_that_cannot_be_read_is_the_operators_fault(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ValueError, match="PLURNK_CA_FILE"):
        HttpPool(Settings(ca_file=str(file)))


async def test_a_peer_that_speaks_no_tls_was_not_sent_anything() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, pool_with() as pool:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(RequestNotSent) as raised:
            await transport(pool, f"https://127.0.0.1:{port}/mcp").request(*CALL)
    assert raised.value.reason == "the TLS handshake failed"


@pytest.mark.spec("security")
@pytest.mark.parametrize("hosts", ["public", ("10.0.0.0/8", "*.example.com")])
async def test_a_name_that_leads_to_a_forbidden_address_is_refused_where_it_is_connected_to(
    hosts: object,
) -> None:
    async with scripted_http() as peer, pool_with(http_hosts=hosts) as pool:
        url = peer.url.replace("127.0.0.1", "localhost")
        await pool.require_allowed(URL(url))
        with pytest.raises(AddressNotSent):
            await transport(pool, url).request(*CALL)
        assert peer.connections == 0


@pytest.mark.spec("security")
@pytest.mark.skipif(sys.platform != "linux", reason="loopback has one address elsewhere")
async def test_a_name_that_turns_is_judged_by_the_address_that_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolved, asked, met = socket.getaddrinfo, list[str](), list[str]()
    leads_to = "127.0.0.1"

    def getaddrinfo(host: str, *arguments: Any, **options: Any) -> Any:
        if host != "turning.example":
            return resolved(host, *arguments, **options)
        asked.append(leads_to)
        return resolved(leads_to, *arguments, **options)

    async def meet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(leads_to)
        writer.close()

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    async with scripted_http() as peer, pool_with(http_hosts=("127.0.0.1/32",)) as pool:
        url = peer.url.replace("127.0.0.1", "turning.example")
        async with await asyncio.start_server(meet, "127.0.0.2", URL(url).port):
            await pool.require_allowed(URL(url))
            assert isinstance(await transport(pool, url).request(*CALL), Result)
            leads_to = "127.0.0.2"
            async with pool_with(http_hosts=("127.0.0.1/32",)) as fresh:
                with pytest.raises(AddressNotSent):
                    await transport(fresh, url).request(*CALL)
    assert (asked, met, peer.connections) == (["127.0.0.1", "127.0.0.2"], [], 1)


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1"]
)
async def test_a_literal_address_is_refused_before_anything(host: str) -> None:
    async with pool_with(http_hosts="public") as pool:
        with pytest.raises(AddressNotAllowedError):
            await pool.require_allowed(URL(f"http://{host}:9/mcp"))


@pytest.mark.spec("security")
async def test_a_listed_name_or_address_passes() -> None:
    async with (
        scripted_http() as peer,
        pool_with(http_hosts=("localhost", "127.0.0.0/8")) as pool,
    ):
        for url in (peer.url, peer.url.replace("127.0.0.1", "localhost")):
            await pool.require_allowed(URL(url))
            assert isinstance(await transport(pool, url).request(*CALL), Result)


@pytest.mark.spec("security")
async def test_what_a_proxy_would_resolve_is_judged_here() -> None:
    async with scripted_http() as proxy, pool_with(http_hosts="public", http_proxy=proxy.origin) as pool:
        for host in ("localhost", "does-not-exist.invalid", "127.0.0.1"):
            with pytest.raises(AddressNotAllowedError):
                await pool.require_allowed(URL(f"http://{host}/mcp"))
        await pool.require_allowed(URL("http://93.184.215.14/mcp"))
        assert isinstance(await transport(pool, "http://93.184.215.14/mcp").request(*CALL), Result)
        assert proxy.seen[0].path == "http://93.184.215.14/mcp"


@pytest.mark.spec("connection")
async def test_a_proxy_sees_its_credentials_whoever_opened_the_connection() -> None:
    async with scripted_http() as proxy:
        async with pool_with(http_proxy=proxy.origin.replace("//", "//user:word@")) as pool:
            for _ in range(2):
                way = transport(pool, "http://mcp.invalid/mcp")
                for _ in range(2):
                    assert isinstance(await way.request(*CALL), Result)
        shown = [seen.headers.get("proxy-authorization") for seen in proxy.seen]
        assert (shown, proxy.connections) == (["Basic dXNlcjp3b3Jk"] * 4, 2)


@pytest.mark.spec("connection")
async def test_definitions_of_one_server_share_what_is_pooled_and_a_closed_pool_keeps_nothing() -> None:
    async with scripted_http() as peer, pool_with() as pool:
        for _ in range(3):
            assert isinstance(await transport(pool, peer.url).request(*CALL), Result)
        assert peer.connections == 1
        way = transport(pool, peer.url)
        await way.request(*CALL)
        await pool.close()
        with pytest.raises(RequestNotSent):
            await way.request(*CALL)
        assert len(peer.seen) == 4


@pytest.mark.spec("connection")
@pytest.mark.parametrize("url", ["http://mcp.invalid/mcp", "https://mcp.invalid/mcp"])
async def test_a_proxy_that_is_not_there_is_named(url: str) -> None:
    async with scripted_http() as gone:
        proxy = gone.origin
    async with pool_with(http_proxy=proxy) as pool:
        with pytest.raises(RequestNotSent) as raised:
            await transport(pool, url).request(*CALL)
    assert raised.value.reason == "the proxy that PLURNK_HTTP_PROXY names cannot be reached"


async def test_a_closed_pool_opens_nothing() -> None:
    async with pool_with() as pool:
        pass
    await pool.close()
    with pytest.raises(RequestNotSent):
        await transport(pool, "http://127.0.0.1:9/mcp").request(*CALL)


@pytest.mark.spec("watch")
async def test_a_peer_that_vanished_is_noticed_on_a_stream_that_is_silent() -> None:
    with probed_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))) as opened:
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        for name, value in KEEPALIVE_PROBES.items():
            if hasattr(socket, name):
                assert opened.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) == value
    async with scripted_http() as peer, pool_with() as pool:
        connection = await pool.place(URL(peer.url), CIMultiDict()).connect()
        assert connection.transport is not None
        used: socket.socket = connection.transport.get_extra_info("socket")
        assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        connection.lease.close()
