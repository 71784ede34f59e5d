"""tokens.py: what is sent to a token endpoint to the letter, and what of its answers is believed."""

import gc
import time
from base64 import b64decode
from typing import Any

import pytest

from app.connections.oauth.clients import BASIC, NONE, POST, OAuthClient
from app.connections.oauth.tokens import (
    LIFETIME_MAX_S,
    TokenRefusedError,
    TokenSet,
    client_credentials,
    exchange_code,
    refresh,
)
from app.core.masking import PASSING_MAX, Mask
from app.core.oauth_problems import OAuthMetadataInvalid
from app.core.problems import ServerUnavailable
from tests.support.oauth_documents import Documents, authorization_server, document, fetcher, form
from tests.support.scripted_http import Reply, ScriptedHttp, scripted_http

pytestmark = pytest.mark.spec("oauth")

ACCESS, REFRESH, CODE, VERIFIER, SECRET = (
    f"canary-{name}-0123456789" for name in ("at", "rt", "code", "cv", "cs")
)
GRANTED: dict[str, object] = {"access_token": ACCESS, "token_type": "Bearer"}
HELD = TokenSet(ACCESS, REFRESH, None, ("a",))


async def ask(peer: ScriptedHttp, reply: Reply, grant: str = "code", **options: Any) -> TokenSet:
    """Return what a grant brings where the token endpoint answers this."""
    peer.routes = Documents({"/token": reply})
    to = fetcher(peer.url, mask=options.get("mask"))
    server = authorization_server(peer.origin, resource=options.get("resource", f"{peer.origin}/mcp"))
    client = options.get("client") or OAuthClient(peer.origin, "cid", None, NONE)
    scopes = options.get("scopes", ("a", "b"))
    match grant:
        case "code":
            return await exchange_code(
                to,
                server,
                client,
                code=CODE,
                code_verifier=VERIFIER,
                redirect_url="http://localhost/cb",
                scopes=scopes,
            )
        case "refresh":
            return await refresh(to, server, client, HELD)
        case _:
            return await client_credentials(to, server, client, scopes)


async def test_each_grant_sends_exactly_what_it_is_made_of() -> None:
    async with scripted_http() as peer:
        resource = f"{peer.origin}/a?b=c d"
        for grant in ("code", "refresh", "machine"):
            await ask(peer, document(GRANTED), grant, resource=resource)
        await ask(peer, document(GRANTED), "machine", resource=resource, scopes=())
        assert [sorted(form(seen)) for seen in peer.seen] == [
            [
                ("client_id", "cid"),
                ("code", CODE),
                ("code_verifier", VERIFIER),
                ("grant_type", "authorization_code"),
                ("redirect_uri", "http://localhost/cb"),
                ("resource", resource),
            ],
            [
                ("client_id", "cid"),
                ("grant_type", "refresh_token"),
                ("refresh_token", REFRESH),
                ("resource", resource),
            ],
            [
                ("client_id", "cid"),
                ("grant_type", "client_credentials"),
                ("resource", resource),
                ("scope", "a b"),
            ],
            [("client_id", "cid"), ("grant_type", "client_credentials"), ("resource", resource)],
        ]
        for seen in peer.seen:
            assert seen.path == "/token"
            assert seen.headers["content-type"] == "application/x-www-form-urlencoded"
            assert "authorization" not in seen.headers


@pytest.mark.parametrize(
    ("client_id", "secret", "sent"),
    [
        ("cid", "s3cret", "cid:s3cret"),
        ("a b", " %&+£€/=", "a+b:+%25%26%2B%C2%A3%E2%82%AC%2F%3D"),
        ("https://a:b", "x:y", "https%3A%2F%2Fa%3Ab:x%3Ay"),
        ("pre-registered-client", "a_b.c-d", "pre-registered-client:a_b.c-d"),
    ],
)
async def test_basic_authentication_encodes_both_halves_as_a_form_does(
    client_id: str, secret: str, sent: str
) -> None:
    async with scripted_http() as peer:
        for grant in ("code", "refresh", "machine"):
            await ask(peer, document(GRANTED), grant, client=OAuthClient("", client_id, secret, BASIC))
        for seen in peer.seen:
            scheme, _, credentials = seen.headers["authorization"].partition(" ")
            assert (scheme, b64decode(credentials).decode("ascii")) == ("Basic", sent)
            assert dict(form(seen))["client_id"] == client_id
            assert "client_secret" not in dict(form(seen))


async def test_a_secret_stands_in_the_body_where_that_is_the_method_and_nowhere_where_there_is_none() -> None:
    async with scripted_http() as peer:
        await ask(peer, document(GRANTED), client=OAuthClient("", "a b", "ß&=", POST))
        await ask(peer, document(GRANTED), client=OAuthClient("", "a b", SECRET, NONE))
        first, second = (dict(form(seen)) for seen in peer.seen)
        assert (first["client_id"], first["client_secret"]) == ("a b", "ß&=")
        assert second["client_id"] == "a b"
        assert SECRET not in peer.seen[1].body.decode()
        assert not [seen for seen in peer.seen if "authorization" in seen.headers]


@pytest.mark.parametrize("kind", ["bearer", "BEARER", "Bearer"])
async def test_a_bearer_token_of_any_spelling_is_sent_as_bearer(kind: str) -> None:
    async with scripted_http() as peer:
        tokens = await ask(peer, document({**GRANTED, "token_type": kind, "ext_x": "9", "id_token": 7}))
        assert tokens == TokenSet(ACCESS, None, None, ("a", "b"))
        assert tokens.header == f"Bearer {ACCESS}"


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (60, 60.0),
        ("4321", 4321.0),
        (1.5, 1.5),
        (0, 0.0),
        (-5, 0.0),
        (1e300, LIFETIME_MAX_S),
        ("9" * 20, LIFETIME_MAX_S),
        ("", None),
        ("soon", None),
        ("١٢", None),
        ("9" * 5000, None),
        (True, None),
        (None, None),
        ([60], None),
    ],
)
async def test_a_lifetime_is_a_number_or_digits(given: object, seconds: float | None) -> None:
    async with scripted_http() as peer:
        before = time.monotonic()
        expires_at = (await ask(peer, document({**GRANTED, "expires_in": given}))).expires_at
        if seconds is None:
            assert expires_at is None
        else:
            assert expires_at is not None
            assert before + seconds <= expires_at <= time.monotonic() + seconds


@pytest.mark.parametrize(
    ("scope", "scopes"), [("b c", ("b", "c")), ("", ("a", "b")), (None, ("a", "b")), (["c"], ("a", "b"))]
)
async def test_what_is_granted_is_what_was_asked_for_unless_the_answer_says_else(
    scope: object, scopes: tuple[str, ...]
) -> None:
    async with scripted_http() as peer:
        assert (await ask(peer, document({**GRANTED, "scope": scope}))).scopes == scopes


@pytest.mark.parametrize(
    ("grant", "given", "kept"),
    [
        ("code", None, None),
        ("code", "", None),
        ("code", 7, None),
        ("code", "canary-rt-new", "canary-rt-new"),
        ("refresh", None, REFRESH),
        ("refresh", "", REFRESH),
        ("refresh", "canary-rt-new", "canary-rt-new"),
    ],
)
async def test_a_refresh_that_brings_no_refresh_token_keeps_the_old_one(
    grant: str, given: object, kept: str | None
) -> None:
    async with scripted_http() as peer:
        tokens = await ask(peer, document({**GRANTED, "refresh_token": given}), grant)
        assert tokens.refresh_token == kept
        assert tokens.scopes == (("a",) if grant == "refresh" else ("a", "b"))


@pytest.mark.parametrize(
    ("status", "answer", "code"),
    [
        (400, {"error": "invalid_grant", "error_description": "canary"}, "invalid_grant"),
        (401, {"error": "invalid_client"}, "invalid_client"),
        (400, {"error": "canary phone +1-555"}, None),
        (400, {"error": ["invalid_grant"]}, None),
        (400, [], None),
        (404, None, None),
        (302, None, None),
        (200, {"error": "invalid_grant", **GRANTED}, "invalid_grant"),
    ],
)
async def test_a_refusal_is_told_by_a_code_that_a_standard_defines(
    status: int, answer: object, code: str | None
) -> None:
    async with scripted_http() as peer:
        for grant in ("code", "refresh", "machine"):
            with pytest.raises(TokenRefusedError) as raised:
                await ask(peer, document(answer, status), grant)
            assert raised.value.code == code
            assert "canary" not in str(raised.value)


MALFORMED: dict[str, object] = {
    "no object": [ACCESS],
    "nothing": None,
    "a misspelt member": {"acces_token": ACCESS, "token_type": "Bearer"},
    "an empty token": {"access_token": "", "token_type": "Bearer"},
    "no text": {"access_token": 7, "token_type": "Bearer"},
    "a token that would split a header": {"access_token": f"{ACCESS}\r\nX: y", "token_type": "Bearer"},
    "a token that is no ASCII": {"access_token": f"{ACCESS}é", "token_type": "Bearer"},
    "a token that no header has room for": {"access_token": "canary" * 3000, "token_type": "Bearer"},
    "a refresh token of that size": {**GRANTED, "refresh_token": "canary" * 3000},
    "no type": {"access_token": ACCESS},
    "another type": {"access_token": ACCESS, "token_type": "DPoP"},
    "no text for a type": {"access_token": ACCESS, "token_type": ["Bearer"]},
}


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED.keys())
async def test_an_answer_without_a_usable_token_is_refused_and_not_repeated(answer: object) -> None:
    async with scripted_http() as peer:
        with pytest.raises(OAuthMetadataInvalid) as raised:
            await ask(peer, document(answer))
        assert "canary" not in raised.value.detail


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_token_endpoint_that_cannot_answer_is_no_refusal(status: int) -> None:
    async with scripted_http() as peer:
        for grant in ("code", "refresh", "machine"):
            with pytest.raises(ServerUnavailable):
                await ask(peer, document({"error": "invalid_grant"}, status), grant)


async def test_tokens_are_known_to_the_mask_once_they_are_read_and_shown_by_nothing() -> None:
    async with scripted_http() as peer:
        mask = Mask()
        tokens = await ask(peer, document({**GRANTED, "refresh_token": REFRESH}), mask=mask)
        assert mask.mask(f"{ACCESS} {REFRESH}") == "*** ***"
        assert "canary" not in repr(tokens)
        unusable = Mask()
        with pytest.raises(OAuthMetadataInvalid):
            await ask(peer, document({"access_token": ACCESS, "refresh_token": REFRESH}), mask=unusable)
        assert unusable.mask(f"{ACCESS} {REFRESH}") == "*** ***"


async def test_a_thousand_tokens_leave_no_more_than_a_few_behind_and_those_go_with_their_owner() -> None:
    async with scripted_http() as peer:
        mask = Mask()
        to, server = fetcher(peer.url, mask=mask), authorization_server(peer.origin)
        client, tokens = OAuthClient(peer.origin, "cid", SECRET, NONE), HELD
        for number in range(PASSING_MAX):
            fresh = {**GRANTED, "access_token": f"{ACCESS}-{number}", "refresh_token": f"{REFRESH}-{number}"}
            peer.routes = Documents({"/token": document(fresh)})
            tokens = await refresh(to, server, client, tokens)
        assert repr(mask) == f"Mask({PASSING_MAX} values)"
        assert mask.mask(f"{SECRET} {tokens.access_token} {tokens.refresh_token}") == "*** *** ***"
        del to
        gc.collect()
        mask.add(["something else"])
        assert repr(mask) == "Mask(1 values)"
