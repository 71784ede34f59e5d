"""discovery.py: where the documents are looked for, in which order, and what of them is believed."""

from typing import Any

import pytest

from app.connections.oauth.discovery import AuthorizationServer, discover
from app.core.challenge import BearerChallenge
from app.core.oauth_problems import OAuthClientCredentialsFailed, OAuthMetadataInvalid
from app.core.problems import ServerUnavailable
from tests.support.oauth_documents import (
    METADATA,
    OPENID,
    PERSON,
    PRM,
    document,
    documents,
    fetcher,
    machine,
    metadata,
    paths,
    registered,
)
from tests.support.scripted_http import Reply, ScriptedHttp

pytestmark = pytest.mark.spec("oauth")


async def found(peer: ScriptedHttp, path: str = "/mcp", **options: Any) -> AuthorizationServer:
    challenge = BearerChallenge(options.pop("places", ()))
    config = options.pop("config", PERSON)
    return await discover(fetcher(peer.origin + path), challenge, config, **options)


def prm(peer: ScriptedHttp, **changed: object) -> Reply:
    members = {"resource": peer.url, "authorization_servers": [peer.origin], **changed}
    return document({name: value for name, value in members.items() if value is not None})


async def test_everything_that_is_used_is_what_the_documents_say() -> None:
    async with documents() as peer:
        origin = peer.origin
        peer.routes[f"{PRM}/mcp"] = prm(peer, scopes_supported=["b", "a", 7, "b", "c d"])
        peer.routes[METADATA] = document(
            metadata(
                origin,
                origin,
                scopes_supported=["offline_access"],
                authorization_response_iss_parameter_supported=True,
                client_id_metadata_document_supported=True,
                token_endpoint_auth_methods_supported=["none", "client_secret_post"],
            )
        )
        assert await found(peer) == AuthorizationServer(
            resource=peer.url,
            issuer=origin,
            authorization_endpoint=f"{origin}/authorize",
            token_endpoint=f"{origin}/token",
            registration_endpoint=f"{origin}/register",
            resource_scopes=("b", "a", "c", "d"),
            scopes_supported=("offline_access",),
            is_iss_sent=True,
            takes_metadata_documents=True,
            token_auth_methods=("none", "client_secret_post"),
        )


async def test_what_the_documents_do_not_say_is_not_there() -> None:
    async with documents() as peer:
        peer.routes[METADATA] = document(
            metadata(
                peer.origin,
                peer.origin,
                registration_endpoint=None,
                authorization_response_iss_parameter_supported="true",
                client_id_metadata_document_supported=1,
                scopes_supported="a b",
            )
        )
        server = await found(peer)
        assert server.registration_endpoint is None
        assert (server.is_iss_sent, server.takes_metadata_documents) == (False, False)
        assert (server.resource_scopes, server.scopes_supported) == ((), ())
        assert server.token_auth_methods == ("client_secret_basic",)


@pytest.mark.parametrize(
    ("path", "asked", "at"),
    [
        ("/mcp", [f"{PRM}/mcp"], f"{PRM}/mcp"),
        ("/mcp", [f"{PRM}/mcp", PRM], PRM),
        ("/a/mcp/", [f"{PRM}/a/mcp/"], f"{PRM}/a/mcp/"),
        ("/mcp?tenant=1", [f"{PRM}/mcp?tenant=1"], f"{PRM}/mcp?tenant=1"),
        ("/", [PRM], PRM),
        ("", [PRM], PRM),
    ],
)
async def test_without_a_url_in_the_challenge_the_well_known_places_are_tried_in_order(
    path: str, asked: list[str], at: str
) -> None:
    async with documents() as peer:
        peer.routes[f"{PRM}/mcp"] = Reply(404)
        peer.routes[at] = prm(peer, resource=peer.origin)
        await found(peer, path)
        assert paths(peer) == [*asked, METADATA]


async def test_the_urls_of_the_challenge_are_the_only_places() -> None:
    async with documents() as peer:
        peer.routes["/prm"] = prm(peer)
        await found(peer, places=(f"{peer.origin}/prm", f"{peer.origin}/unasked"))
        await found(peer, places=(f"{peer.origin}/first", f"{peer.origin}/prm"))
        with pytest.raises(OAuthMetadataInvalid):
            await found(peer, places=(f"{peer.origin}/other",))
        assert paths(peer) == ["/prm", METADATA, "/first", "/prm", METADATA, "/other"]


@pytest.mark.parametrize(
    ("issuer", "places"),
    [
        ("", [METADATA, OPENID]),
        ("/", [METADATA, OPENID]),
        ("/t1", [f"{METADATA}/t1", f"{OPENID}/t1", f"/t1{OPENID}"]),
        ("/t1/", [f"{METADATA}/t1", f"{OPENID}/t1", f"/t1{OPENID}"]),
        ("/gw/a", [f"{METADATA}/gw/a", f"{OPENID}/gw/a", f"/gw/a{OPENID}"]),
    ],
)
async def test_the_metadata_of_an_issuer_is_looked_for_in_its_places_in_order(
    issuer: str, places: list[str]
) -> None:
    for count in range(1, len(places) + 1):
        async with documents() as peer:
            del peer.routes[METADATA]
            peer.routes[f"{PRM}/mcp"] = prm(peer, authorization_servers=[peer.origin + issuer])
            peer.routes[places[count - 1]] = document(metadata(peer.origin, peer.origin + issuer))
            assert (await found(peer)).issuer == peer.origin + issuer
            assert paths(peer)[1:] == places[:count]
    async with documents() as peer:
        del peer.routes[METADATA]
        peer.routes[f"{PRM}/mcp"] = prm(peer, authorization_servers=[peer.origin + issuer])
        with pytest.raises(OAuthMetadataInvalid):
            await found(peer)
        assert paths(peer)[1:] == places


async def test_a_page_for_everything_is_no_metadata() -> None:
    async with documents() as peer:
        page = Reply(200, {"Content-Type": "text/html"}, b"<!doctype html>")
        peer.routes[f"{PRM}/mcp"], peer.routes[METADATA] = page, page
        peer.routes[PRM] = prm(peer)
        peer.routes[OPENID] = document(metadata(peer.origin, peer.origin))
        assert (await found(peer)).issuer == peer.origin


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_metadata_that_cannot_be_had_now_is_retryable(status: int) -> None:
    for place in (f"{PRM}/mcp", METADATA):
        async with documents() as peer:
            peer.routes[place] = Reply(status)
            with pytest.raises(ServerUnavailable) as raised:
                await found(peer)
            assert raised.value.facts["httpStatus"] == status


RESOURCES = {
    "the URL itself": ("/mcp", "/mcp", True),
    "the origin": ("/mcp", "", True),
    "the origin with a slash": ("/mcp", "/", True),
    "a path prefix": ("/a/mcp", "/a", True),
    "a slash at its end": ("/a/mcp", "/a/", True),
    "no prefix of segments": ("/mcp", "/mc", False),
    "a longer path": ("/mcp", "/mcp/x", False),
    "another path": ("/mcp", "/other", False),
    "another path by dots": ("/mcp", "/mcp/../other", False),
    "a fragment": ("/mcp", "/mcp#x", False),
    "an empty fragment": ("/mcp", "/mcp#", False),
    "the same query": ("/mcp?a=1", "/mcp?a=1", True),
    "another query": ("/mcp?a=1", "/mcp?a=2", False),
    "a query of its own": ("/mcp", "?a=1", False),
}


@pytest.mark.parametrize(("path", "resource", "is_good"), RESOURCES.values(), ids=RESOURCES.keys())
async def test_a_resource_is_the_url_or_a_path_prefix_and_sent_to_the_letter(
    path: str, resource: str, is_good: bool
) -> None:
    async with documents() as peer:
        peer.routes[f"{PRM}{path}"] = prm(peer, resource=peer.origin + resource)
        if is_good:
            assert (await found(peer, path)).resource == peer.origin + resource
            return
        with pytest.raises(OAuthMetadataInvalid):
            await found(peer, path)
        assert METADATA not in paths(peer)


@pytest.mark.parametrize(
    "resource",
    [
        "https://evil.example/mcp",
        "https://127.0.0.1/mcp",
        "http://u@127.0.0.1/mcp",
        "//127.0.0.1/mcp",
        "/mcp",
        "mcp",
        "http://[::1",
        "",
        None,
        7,
        ["x"],
    ],
)
async def test_another_resource_ends_it_before_any_authorization_server_is_asked(resource: object) -> None:
    async with documents() as peer:
        peer.routes[f"{PRM}/mcp"] = prm(peer, resource=resource)
        with pytest.raises(OAuthMetadataInvalid) as raised:
            await found(peer)
        assert paths(peer) == [f"{PRM}/mcp"]
        assert "evil" not in raised.value.detail


async def test_another_spelling_of_the_same_origin_is_another_resource() -> None:
    async with documents() as peer:
        for host in ("localhost", "user@127.0.0.1"):
            resource = peer.url.replace("127.0.0.1", host)
            peer.routes[f"{PRM}/mcp"] = prm(peer, resource=resource)
            with pytest.raises(OAuthMetadataInvalid):
                await found(peer)


@pytest.mark.parametrize(
    "servers",
    [
        None,
        [],
        "$ORIGIN",
        [7],
        ["ftp://a.example"],
        ["http://a.example"],
        ["https://a.example?x"],
        ["https://u@a.example"],
        ["https://a.example#"],
        ["https://a b"],
        [""],
    ],
)
async def test_a_resource_without_an_issuer_that_could_be_one_is_refused(servers: object) -> None:
    async with documents() as peer:
        servers = peer.origin if servers == "$ORIGIN" else servers
        peer.routes[f"{PRM}/mcp"] = prm(peer, authorization_servers=servers)
        with pytest.raises(OAuthMetadataInvalid):
            await found(peer)
        assert paths(peer) == [f"{PRM}/mcp"]


@pytest.mark.parametrize(
    ("listed", "issuer"),
    [("", "/"), ("/", ""), ("/t1", "/t1/"), ("/t1", ""), ("", "https://evil.example"), ("", None)],
)
async def test_an_issuer_is_identical_to_the_letter(listed: str, issuer: str | None) -> None:
    async with documents() as peer:
        said = issuer if issuer is None or "evil" in issuer else peer.origin + issuer
        peer.routes[f"{PRM}/mcp"] = prm(peer, authorization_servers=[peer.origin + listed])
        peer.routes[f"{METADATA}{listed.rstrip('/')}"] = document(
            {**metadata(peer.origin, "x"), "issuer": said}
        )
        with pytest.raises(OAuthMetadataInvalid) as raised:
            await found(peer)
        assert len(peer.seen) == 2
        two = "the issuer in its authorization server's metadata is not the one in its protected resource metadata"
        assert two in raised.value.detail
        assert "evil" not in raised.value.detail
        by_slash = said is not None and said.rstrip("/") == (peer.origin + listed).rstrip("/")
        assert ("differ in a slash at the end" in raised.value.detail) == by_slash


UNFIT = [
    "file:///etc/passwd",
    "smb://h/x",
    "javascript:alert(1)",
    "data:text/html,x",
    "//evil.example/a",
    "http://public.example/a",
    "https://u:p@h/a",
    "https://h/a#f",
    "https://h/ a",
    "/authorize",
    "",
    7,
]


@pytest.mark.parametrize("url", UNFIT)
@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
async def test_an_endpoint_that_no_request_or_browser_may_be_sent_to_is_refused(
    name: str, url: object
) -> None:
    async with documents() as peer:
        peer.routes[METADATA] = document(metadata(peer.origin, peer.origin, **{name: url}))
        with pytest.raises(OAuthMetadataInvalid) as raised:
            await found(peer)
        assert name in raised.value.detail
        assert "evil" not in raised.value.detail


@pytest.mark.parametrize(
    "changed",
    [
        {"authorization_endpoint": None},
        {"token_endpoint": None},
        {"code_challenge_methods_supported": None},
        {"code_challenge_methods_supported": []},
        {"code_challenge_methods_supported": ["plain", "s256"]},
        {"code_challenge_methods_supported": "S256"},
    ],
)
async def test_a_person_needs_both_endpoints_and_s256(changed: dict[str, object]) -> None:
    async with documents() as peer:
        peer.routes[METADATA] = document(metadata(peer.origin, peer.origin, **changed))
        with pytest.raises(OAuthMetadataInvalid):
            await found(peer)


async def test_a_machine_needs_a_token_endpoint_only() -> None:
    async with documents() as peer:
        bare = {
            "authorization_endpoint": None,
            "registration_endpoint": None,
            "code_challenge_methods_supported": None,
        }
        peer.routes[METADATA] = document(metadata(peer.origin, peer.origin, **bare))
        server = await found(peer, config=machine())
        assert (server.authorization_endpoint, server.token_endpoint) == (None, f"{peer.origin}/token")


async def test_the_first_usable_of_several_authorization_servers_is_taken() -> None:
    async with documents() as peer:
        origin = peer.origin
        servers = ["http://a.example", f"{origin}/none", f"{origin}/plain", origin, f"{origin}/never"]
        peer.routes[f"{PRM}/mcp"] = prm(peer, authorization_servers=servers)
        plain = metadata(origin, f"{origin}/plain", code_challenge_methods_supported=["plain"])
        peer.routes[f"{METADATA}/plain"] = document(plain)
        assert (await found(peer)).issuer == origin
        assert not [path for path in paths(peer) if "never" in path]
        peer.routes[f"{PRM}/mcp"] = prm(
            peer, authorization_servers=[*(f"{origin}/{n}" for n in range(5)), origin]
        )
        with pytest.raises(OAuthMetadataInvalid):
            await found(peer)
        assert (await found(peer, issuer=origin)).issuer == origin


@pytest.mark.parametrize("is_argument", [True, False])
async def test_credentials_go_to_the_issuer_they_belong_to_only(is_argument: bool) -> None:
    async with documents() as peer:
        own, origin = f"{peer.origin}/own", peer.origin

        given = {} if is_argument else {"issuer": own}
        options: dict[str, Any] = {"issuer": own} if is_argument else {}
        peer.routes[f"{PRM}/mcp"] = prm(peer, authorization_servers=[origin, own])
        peer.routes[f"{METADATA}/own"] = document(metadata(origin, own))
        assert (await found(peer, config=registered(**given), **options)).issuer == own
        peer.routes[f"{PRM}/mcp"] = prm(peer)
        peer.seen.clear()
        with pytest.raises(OAuthMetadataInvalid):
            await found(peer, config=registered(**given), **options)
        with pytest.raises(OAuthClientCredentialsFailed) as raised:
            await found(peer, config=machine(**given), **options)
        assert raised.value.facts["clientId"] == "c"
        assert paths(peer) == [f"{PRM}/mcp"] * 2
