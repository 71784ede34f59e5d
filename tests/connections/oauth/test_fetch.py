"""fetch.py: which URLs are fetched, from which addresses, and which answers are read; on real sockets."""

import gzip
import ssl
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from app.connections.oauth import fetch
from app.connections.oauth.fetch import BODY_MAX, REDIRECTS_MAX, Fetched, Fetcher, system_addresses
from app.core.oauth_problems import OAuthMetadataInvalid
from app.core.problems import ServerUnavailable
from app.settings import MIB
from tests.support.certificates import server_tls
from tests.support.oauth_documents import Documents, document, fetcher, paths
from tests.support.scripted_http import HANG, Reply, scripted_http

oauth = pytest.mark.spec("oauth")
security = pytest.mark.spec("security")

PUBLIC, PRIVATE = "https://93.184.215.14/mcp", "https://10.0.0.1/mcp"
WHAT = "its metadata"


class Names:
    """Resolves names as a table says, other addresses each time where it says so; counts what it was asked."""

    def __init__(self, **table: Sequence[str]) -> None:
        self.table = {name.replace("_", "."): list(addresses) for name, addresses in table.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:  # noqa: ARG002 a Resolve has it
        self.asked.append(host)
        if host not in self.table:
            raise OSError("no such name")
        return self.table[host]


async def post(to: Fetcher, url: str, body: str = "a=1") -> Fetched:
    return await to.post(url, WHAT, body=body, headers={"Content-Type": "application/x-www-form-urlencoded"})


@oauth
async def test_a_get_and_a_post_bring_their_answer_and_carry_nothing_of_ours() -> None:
    async with scripted_http(
        routes=Documents({"/x?y=1": document({"a": [1]}), "/t": document({"b": 2}, 400)})
    ) as peer:
        to = fetcher(peer.url)
        assert await to.get(f"{peer.origin}/x?y=1", WHAT) == Fetched(200, {"a": [1]})
        assert await post(to, f"{peer.origin}/t") == Fetched(400, {"b": 2})
        assert (await to.get(f"{peer.origin}/none", WHAT)) == Fetched(404, None)
        got, posted = peer.seen[0], peer.seen[1]
        assert {**got.headers, "user-agent": ""} == {
            "host": peer.origin.removeprefix("http://"),
            "accept": "application/json",
            "accept-encoding": "identity",
            "connection": "keep-alive",
            "user-agent": "",
        }
        assert got.headers["user-agent"].startswith("plurnk-mcpd/")
        assert posted.body == b"a=1"
        assert posted.headers["content-type"] == "application/x-www-form-urlencoded"


@oauth
@pytest.mark.parametrize(
    ("status", "is_success", "is_passing"),
    [
        (200, True, False),
        (201, True, False),
        (302, False, False),
        (404, False, False),
        (429, False, True),
        (503, False, True),
    ],
)
def test_a_status_tells_whether_it_went_well_and_whether_it_may_later(
    status: int, is_success: bool, is_passing: bool
) -> None:
    fetched = Fetched(status, None)
    assert (fetched.is_success, fetched.is_passing) == (is_success, is_passing)


@oauth
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"7",
        b'"x"',
        b"<html>",
        b'{"a":NaN}',
        b'{"a":1',
        b"[" * 5000,
        b"\x1f\x8b\x08",
    ],
)
async def test_what_is_no_json_object_is_no_document(body: bytes) -> None:
    async with scripted_http(routes=Documents({"/x": Reply(body=body)})) as peer:
        assert await fetcher(peer.url).get(f"{peer.origin}/x", WHAT) == Fetched(200, None)


@pytest.mark.parametrize(
    "body",
    [b'{"a":1,"x":"\\ud83d"}', b'{"a":1,"x":"\xff"}', b'\xef\xbb\xbf{"a":1,"x":"\\ufffd"}'],
    ids=["a lone surrogate", "no UTF-8", "a byte order mark"],
)
async def test_what_is_no_text_costs_itself_and_not_the_document(body: bytes) -> None:
    async with scripted_http(routes=Documents({"/x": Reply(body=body)})) as peer:
        found = await fetcher(peer.url).get(f"{peer.origin}/x", WHAT)
        assert found == Fetched(200, {"a": 1, "x": "\ufffd"})


UNFIT = {
    "no scheme": "a.example/x",
    "another scheme": "ftp://a.example/x",
    "a file": "file:///etc/passwd",
    "plain http elsewhere": "http://a.example/x",
    "plain http of a private address": "http://10.0.0.1/x",
    "user information": "https://u:p@a.example/x",
    "a fragment": "https://a.example/x#y",
    "a blank": "https://a.example/ x",
    "no host": "https:///x",
    "a decimal address": "https://2130706433/x",
    "an octal address": "https://0177.0.0.1/x",
    "a hexadecimal address": "https://0x7f.1/x",
    "a short address": "https://127.1/x",
    "a port that is none": "https://a.example:99999/x",
    "nothing": "",
}


@security
@pytest.mark.parametrize("url", UNFIT.values(), ids=UNFIT.keys())
async def test_a_url_that_may_not_be_fetched_is_not_even_resolved(url: str) -> None:
    names = Names(a_example=["93.184.215.14"])
    to = fetcher("https://127.0.0.1/mcp", resolve=names)
    with pytest.raises(OAuthMetadataInvalid) as raised:
        await to.get(url, WHAT)
    with pytest.raises(OAuthMetadataInvalid):
        await post(to, url)
    assert names.asked == []
    assert "a.example" not in raised.value.detail


NEVER = [
    "169.254.169.254",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[fe80::1]",
    "100.100.100.200",
    "[fd00:ec2::254]",
]
INWARDS = [
    "127.0.0.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::1]",
    "0.0.0.0",
    "[::]",
]
ASIDE = ["10.0.0.2", "192.168.0.1", "[fd12::1]", "[::ffff:10.0.0.2]", "100.64.0.1", "224.0.0.1"]


@security
@pytest.mark.parametrize(
    ("home", "host"),
    [(PUBLIC, host) for host in NEVER + INWARDS + ASIDE]
    + [(PRIVATE, host) for host in NEVER + INWARDS]
    + [("http://127.0.0.1/mcp", host) for host in NEVER],
)
async def test_an_address_more_private_than_the_servers_own_is_never_connected_to(
    home: str, host: str
) -> None:
    names = Names(a_example=[host.strip("[]")])
    for url in (f"https://{host}/x", "https://a.example/x"):
        with pytest.raises(OAuthMetadataInvalid):
            await fetcher(home, resolve=names).get(url, WHAT)


@security
async def test_all_of_a_names_addresses_are_judged_and_the_allowed_ones_are_tried_in_turn(
    tmp_path: Path,
) -> None:
    context, file = server_tls(tmp_path)
    async with scripted_http(routes=Documents({"/x": document({})}), tls=context) as peer:
        port = peer.origin.rpartition(":")[2]
        names = Names(home_example=["127.0.0.1"], a_example=["169.254.169.254", "::1", "127.0.0.1"])
        to = fetcher("https://home.example/mcp", resolve=names, ca_file=str(file))
        with pytest.raises(ServerUnavailable) as raised:  # connected to, and not of that name
            await to.get(f"https://a.example:{port}/x", WHAT)
        assert "certificate verification failed" in raised.value.detail
        assert await to.get(f"https://127.0.0.1:{port}/x", WHAT) == Fetched(200, {})
        assert paths(peer) == ["/x"]


@security
async def test_plain_http_goes_to_this_machine_only_whatever_the_name_resolves_to() -> None:
    names = Names(localhost=["93.184.215.14"])
    with pytest.raises(OAuthMetadataInvalid):
        await fetcher("http://127.0.0.1/mcp", resolve=names).get("http://localhost/x", WHAT)


@security
async def test_a_server_whose_name_turns_inwards_gains_nothing_by_it() -> None:
    async with scripted_http(routes=Documents({"/x": document({})})) as peer:
        names = Names(home_example=["93.184.215.14"])
        to = fetcher("https://home.example/mcp", resolve=names)
        for addresses in (["93.184.215.14"], ["127.0.0.1"], ["127.0.0.1", "93.184.215.14"]):
            names.table["home.example"] = addresses
            with pytest.raises(OAuthMetadataInvalid):
                await to.get(f"{peer.origin}/x", WHAT)
        both = Names(home_example=["127.0.0.1", "93.184.215.14"])
        with pytest.raises(OAuthMetadataInvalid):
            await fetcher("https://home.example/mcp", resolve=both).get(f"{peer.origin}/x", WHAT)
        seen = fetcher("https://home.example/mcp", resolve=Names(home_example=["127.0.0.1"]))
        seen.saw_peer("93.184.215.14")
        with pytest.raises(OAuthMetadataInvalid):
            await seen.get(f"{peer.origin}/x", WHAT)
        with pytest.raises(OAuthMetadataInvalid):
            await fetcher("https://gone.example/mcp", resolve=Names()).get(f"{peer.origin}/x", WHAT)
        assert peer.connections == 0


@security
async def test_a_listed_link_local_address_may_be_named_by_a_server_that_is_private_itself() -> None:
    url = "https://169.254.1.1:1/x"
    with pytest.raises(OAuthMetadataInvalid):
        await fetcher(PUBLIC, http_hosts=("169.254.0.0/16",)).get(url, WHAT)
    listed = fetcher(PRIVATE, http_hosts=("169.254.0.0/16",))
    assert await listed._judged_addresses(fetch.httpx2.URL(url), WHAT) == ["169.254.1.1"]


@oauth
async def test_a_name_that_does_not_resolve_is_unavailable() -> None:
    for names in (Names(), Names(a_example=[])):
        with pytest.raises(ServerUnavailable):
            await fetcher(PUBLIC, resolve=names).get("https://a.example/x", WHAT)


@oauth
async def test_the_systems_names_are_connected_to_on_any_of_their_addresses() -> None:
    assert set(await system_addresses("localhost", 80)) & {"127.0.0.1", "::1"}
    async with scripted_http(routes=Documents({"/x": document({})})) as peer:
        url = f"{peer.origin.replace('127.0.0.1', 'localhost')}/x"
        to = fetcher(url, resolve=Names(localhost=["::1", "127.0.0.1"]))
        assert await to.get(url, WHAT) == Fetched(200, {})
        assert peer.seen[0].headers["host"] == url.removeprefix("http://").removesuffix("/x")


@oauth
async def test_a_get_follows_redirects_of_its_origin_a_few_times() -> None:
    def to(place: str, status: int = 302) -> Reply:
        return Reply(status, {"Location": place, "Set-Cookie": "a=b"})

    async with scripted_http(routes=Documents({"/4": document({})})) as peer:
        peer.routes |= {
            "/1": to("/2", 301),
            "/2": to(f"{peer.origin}/3", 307),
            "/3": to("4"),
            "/0": to("/1", 308),
        }
        client = fetcher(peer.url)
        assert await client.get(f"{peer.origin}/1", WHAT) == Fetched(200, {})
        assert paths(peer) == ["/1", "/2", "/3", "/4"]
        assert all("cookie" not in seen.headers for seen in peer.seen)
        with pytest.raises(OAuthMetadataInvalid):
            await client.get(f"{peer.origin}/0", WHAT)
        assert len(peer.seen) == 4 + REDIRECTS_MAX + 1
        with pytest.raises(OAuthMetadataInvalid):
            await post(client, f"{peer.origin}/1")
        assert len(peer.seen) == 4 + REDIRECTS_MAX + 2


@security
async def test_no_redirect_leads_to_another_origin() -> None:
    async with scripted_http(routes=Documents({"/x": document({})})) as other, scripted_http() as peer:
        places = [f"{other.origin}/x", f"{peer.origin.replace('127.0.0.1', 'localhost')}/x", "https://127.0.0.1/x",
                  "//evil.example/x", "file:///etc/passwd", "http://[::1", "javascript:alert(1)"]  # fmt: skip
        peer.routes = Documents({f"/{n}": Reply(302, {"Location": place}) for n, place in enumerate(places)})
        for n in range(len(places)):
            with pytest.raises(OAuthMetadataInvalid):
                await fetcher(peer.url).get(f"{peer.origin}/{n}", WHAT)
        assert other.connections == 0
        assert len(peer.seen) == len(places)


@oauth
async def test_an_answer_is_read_up_to_its_limit() -> None:
    room = BODY_MAX - len(b'{"a":""}')
    routes = Documents({f"/{size}": Reply(body=b'{"a":"%b"}' % (b"x" * (room + size))) for size in (0, 1)})
    routes["/endless"] = Reply(chunks=[b"x" * 2**18] * 5 + [HANG])
    async with scripted_http(routes=routes) as peer:
        to = fetcher(peer.url)
        assert (await to.get(f"{peer.origin}/0", WHAT)).document is not None
        for path in ("/1", "/endless"):
            with pytest.raises(OAuthMetadataInvalid):
                await to.get(peer.origin + path, WHAT)


@oauth
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
async def test_a_document_that_is_encoded_is_none_and_never_expanded(encoding: str) -> None:
    bomb = gzip.compress(b'{"a":"' + b" " * 2**26 + b'"}') if "gzip" in encoding else b"{" + b" " * 2**16
    reply = Reply(headers={"Content-Type": "application/json", "Content-Encoding": encoding}, body=bomb)
    async with scripted_http(routes=Documents({"/x": reply})) as peer:
        tracemalloc.start()
        try:
            assert await fetcher(peer.url).get(f"{peer.origin}/x", WHAT) == Fetched(200, None)
            assert tracemalloc.get_traced_memory()[1] < 8 * MIB
        finally:
            tracemalloc.stop()


@oauth
async def test_a_peer_that_does_not_finish_in_time_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TOTAL_S", 0.2)
    async with scripted_http(routes=Documents({"/x": Reply(chunks=[b"{", HANG])})) as peer:
        with pytest.raises(ServerUnavailable), anyio.fail_after(5):
            await fetcher(peer.url).get(f"{peer.origin}/x", WHAT)
        await peer.has_seen(1)
        with anyio.fail_after(5):
            await peer.seen[0].gone.wait()


@oauth
@pytest.mark.parametrize(
    "reply",
    [
        Reply(raw=[b""], then="close"),
        Reply(raw=[b"SSH-2.0\r\n\r\n"], then="close"),
        Reply(chunks=[b"{"], then="reset"),
    ],
    ids=["nothing", "no HTTP", "cut"],
)
async def test_an_answer_that_is_none_is_unavailable(reply: Reply) -> None:
    async with scripted_http(routes=Documents({"/x": reply})) as peer:
        with pytest.raises(ServerUnavailable):
            await post(fetcher(peer.url), f"{peer.origin}/x")
        assert len(peer.seen) == 1


@oauth
async def test_a_port_where_nobody_listens_is_unavailable() -> None:
    async with scripted_http() as peer:
        gone = peer.url
    with pytest.raises(ServerUnavailable) as raised:
        await fetcher(gone).get(gone, WHAT)
    assert raised.value.facts == {"server": "p", "transport": "http"}


@oauth
async def test_certificates_are_verified_and_the_ca_file_adds_roots(tmp_path: Path) -> None:
    context, file = server_tls(tmp_path)
    async with scripted_http(routes=Documents({"/x": document({})}), tls=context) as peer:
        with pytest.raises(ServerUnavailable) as raised:
            await fetcher(peer.url).get(f"{peer.origin}/x", WHAT)
        assert "certificate verification failed" in raised.value.detail
        assert peer.seen == []
        trusting = fetcher(peer.url, ca_file=str(file))
        assert await trusting.get(f"{peer.origin}/x", WHAT) == Fetched(200, {})
        assert isinstance(trusting._terms.tls, ssl.SSLContext)


@oauth
async def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with scripted_http(routes=Documents({"/x": document({})})) as peer, scripted_http() as ambient:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
            monkeypatch.setenv(name, ambient.origin)
        assert await fetcher(peer.url).get(f"{peer.origin}/x", WHAT) == Fetched(200, {})
        assert ambient.connections == 0


@security
async def test_what_a_proxy_would_resolve_is_judged_here() -> None:
    async with scripted_http(routes=Documents({"http://localhost/x": document({})})) as proxy:
        names = Names(home_example=["93.184.215.14"], inside_example=["10.0.0.1"], localhost=["127.0.0.1"])
        public = fetcher("https://home.example/mcp", resolve=names, http_proxy=proxy.origin)
        for host in ("inside.example", "10.0.0.1", "169.254.169.254"):
            with pytest.raises(OAuthMetadataInvalid):
                await public.get(f"https://{host}/x", WHAT)
        with pytest.raises(ServerUnavailable):
            await public.get("https://unknown.example/x", WHAT)
        assert proxy.connections == 0
        here = fetcher("http://localhost/mcp", resolve=names, http_proxy=proxy.origin)
        assert await here.get("http://localhost/x", WHAT) == Fetched(200, {})


@security
async def test_a_name_that_the_operator_lists_is_left_to_the_proxy() -> None:
    async with scripted_http(routes=Documents({"http://localhost/x": document({})})) as proxy:
        to = fetcher(PUBLIC, resolve=Names(), http_proxy=proxy.origin, http_hosts=("localhost",))
        assert await to.get("http://localhost/x", WHAT) == Fetched(200, {})
