"""clients.py: who the daemon is at an authorization server, in which order, and what it tells of itself."""

from typing import Any

import pytest

from app.connections.oauth.clients import BASIC, NONE, POST, OAuthClient, client_for
from app.core.definitions import ClientCredentials, InteractiveOAuth, OAuthMetadataDocument
from app.core.masking import Mask
from app.core.oauth_problems import OAuthClientCredentialsFailed, OAuthMetadataInvalid
from app.core.problems import ServerUnavailable
from tests.support.oauth_documents import (
    PERSON,
    Documents,
    authorization_server,
    document,
    fetcher,
    machine,
    paths,
    registered,
)
from tests.support.scripted_http import Reply, ScriptedHttp, scripted_http

pytestmark = pytest.mark.spec("oauth")

AS = "https://a.example"
SECRET = "canary-registered-secret"
DOCUMENT_URL = "https://c.example/client.json"
DOCUMENT = OAuthMetadataDocument.model_validate(
    {"type": "oauth", "redirectUrl": PERSON.redirect_url, "clientMetadataUrl": DOCUMENT_URL}
)


async def made(
    config: InteractiveOAuth | ClientCredentials, secret: str | None = None, **changed: Any
) -> OAuthClient:
    """Return the client at an authorization server that is not asked anything."""
    server = authorization_server(AS, **changed)
    return await client_for(fetcher(f"{AS}/mcp"), server, config, client_secret=secret)


async def register(
    peer: ScriptedHttp, reply: Reply, *, mask: Mask | None = None, **changed: Any
) -> OAuthClient:
    """Return the client that this answer of the registration endpoint makes."""
    peer.routes = Documents({"/register": reply})
    config = changed.pop("config", PERSON)
    server = authorization_server(peer.origin, **changed)
    return await client_for(fetcher(peer.url, mask=mask), server, config)


@pytest.mark.parametrize(
    ("methods", "method"),
    [((BASIC, POST, NONE), BASIC), ((NONE, POST), POST), ((NONE,), NONE), (("private_key_jwt", POST), POST)],
)
async def test_a_client_that_was_registered_before_is_what_the_definition_says(
    methods: tuple[str, ...], method: str
) -> None:
    for is_document_taken in (True, False):
        client = await made(
            registered(), "s", token_auth_methods=methods, takes_metadata_documents=is_document_taken
        )
        assert client == OAuthClient(AS, "c", "s", method)


async def test_a_client_that_cannot_authenticate_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(OAuthMetadataInvalid):
        await made(registered(), "s", token_auth_methods=("private_key_jwt", "tls_client_auth"))
    with pytest.raises(OAuthClientCredentialsFailed) as raised:
        await made(machine(), "s", token_auth_methods=(POST,))
    assert raised.value.facts["clientId"] == "c"


async def test_a_machine_authenticates_with_basic() -> None:
    assert await made(machine(), "s", token_auth_methods=(POST, BASIC)) == OAuthClient(AS, "c", "s", BASIC)


@pytest.mark.parametrize("endpoint", [None, f"{AS}/register"])
async def test_a_metadata_document_is_the_client_where_it_is_taken(endpoint: str | None) -> None:
    client = await made(DOCUMENT, takes_metadata_documents=True, registration_endpoint=endpoint)
    assert client == OAuthClient(AS, DOCUMENT_URL, None, NONE)


@pytest.mark.parametrize("config", [PERSON, DOCUMENT])
async def test_without_any_way_to_be_a_client_nothing_is_inferred(config: InteractiveOAuth) -> None:
    with pytest.raises(OAuthMetadataInvalid) as raised:
        await made(config, registration_endpoint=None)
    assert "registration" in raised.value.detail
    if config is PERSON:
        with pytest.raises(OAuthMetadataInvalid):
            await made(config, registration_endpoint=None, takes_metadata_documents=True)


@pytest.mark.parametrize("config", [PERSON, DOCUMENT])
async def test_a_registration_says_what_the_client_is(config: InteractiveOAuth) -> None:
    async with scripted_http() as peer:
        client = await register(peer, document({"client_id": "id"}, 201), config=config)
        assert client == OAuthClient(peer.origin, "id", None, NONE)
        assert paths(peer) == ["/register"]
        assert peer.seen[0].headers["content-type"] == "application/json"
        assert peer.seen[0].message == {
            "client_name": "plurnk-mcpd",
            "redirect_uris": [PERSON.redirect_url],
            "application_type": "native",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "client_secret_basic",
        }


@pytest.mark.parametrize(
    ("redirect_url", "kind"),
    [
        ("http://127.0.0.1:1/cb", "native"),
        ("http://[::1]:1/cb", "native"),
        ("https://localhost/cb", "native"),
        ("https://a.example/cb", "web"),
        ("https://localhost.example/cb", "web"),
    ],
)
async def test_an_application_is_native_where_its_redirect_is_this_machine(
    redirect_url: str, kind: str
) -> None:
    async with scripted_http() as peer:
        config = PERSON.model_copy(update={"redirect_url": redirect_url})
        await register(peer, document({"client_id": "id"}), config=config)
        assert peer.seen[0].message["application_type"] == kind


@pytest.mark.parametrize(
    ("supported", "asked"),
    [((NONE, BASIC), NONE), ((POST, BASIC), BASIC), ((POST,), POST), (("private_key_jwt",), NONE)],
)
async def test_the_authentication_that_is_registered_is_one_that_both_can_do(
    supported: tuple[str, ...], asked: str
) -> None:
    async with scripted_http() as peer:
        await register(peer, document({"client_id": "id"}), token_auth_methods=supported)
        assert peer.seen[0].message["token_endpoint_auth_method"] == asked


@pytest.mark.parametrize(
    ("supported", "answer", "method"),
    [
        ((NONE,), {"client_secret": SECRET}, NONE),
        ((BASIC,), {"client_secret": SECRET}, BASIC),
        ((NONE, POST), {"client_secret": SECRET}, POST),
        ((BASIC,), {}, NONE),
        ((BASIC,), {"client_secret": ""}, NONE),
        ((NONE,), {"client_secret": SECRET, "token_endpoint_auth_method": POST}, POST),
        ((BASIC,), {"client_secret": SECRET, "token_endpoint_auth_method": NONE}, NONE),
        ((BASIC,), {"client_secret": SECRET, "token_endpoint_auth_method": BASIC}, BASIC),
    ],
)
async def test_the_answer_of_a_registration_decides_how_the_client_authenticates(
    supported: tuple[str, ...], answer: dict[str, object], method: str
) -> None:
    async with scripted_http() as peer:
        mask = Mask()
        reply = document({"client_id": "id", **answer}, 201)
        client = await register(peer, reply, mask=mask, token_auth_methods=supported)
        secret = str(answer["client_secret"]) if answer.get("client_secret") else None
        assert client == OAuthClient(peer.origin, "id", secret, method)
        assert SECRET not in repr(client)
        assert (SECRET in mask.mask(SECRET)) is (secret is None)


WHOLE = {"client_id": "id", "client_secret": SECRET}
BAD_ANSWERS: dict[str, object] = {
    "no client id": {"client_secret": SECRET},
    "an empty client id": {"client_id": ""},
    "no text for a client id": {"client_id": 7},
    "a client id that would split a header": {"client_id": "a\r\nb"},
    "a secret that is missing": {"client_id": "id", "token_endpoint_auth_method": BASIC},
    "a method we cannot do": {
        "client_id": "id",
        "client_secret": SECRET,
        "token_endpoint_auth_method": "private_key_jwt",
    },
    "no text for a method": {
        "client_id": "id",
        "client_secret": SECRET,
        "token_endpoint_auth_method": [BASIC],
    },
    "a secret that would be guessed": {
        "client_id": "id",
        "client_secret": [SECRET],
        "token_endpoint_auth_method": POST,
    },
    "a secret that no header has room for": {
        "client_id": "id",
        "client_secret": SECRET * 1000,
        "token_endpoint_auth_method": POST,
    },
    "no object": [SECRET],
}


@pytest.mark.parametrize("answer", BAD_ANSWERS.values(), ids=BAD_ANSWERS.keys())
async def test_an_answer_that_makes_no_client_is_refused(answer: object) -> None:
    async with scripted_http() as peer:
        with pytest.raises(OAuthMetadataInvalid) as raised:
            await register(peer, document(answer, 201))
        assert SECRET not in raised.value.detail


@pytest.mark.parametrize(
    ("status", "error", "is_named"),
    [
        (400, "invalid_redirect_uri", True),
        (400, "canary call us", False),
        (403, None, False),
        (302, None, False),
    ],
)
async def test_a_registration_that_is_refused_says_so_in_our_words(
    status: int, error: str | None, is_named: bool
) -> None:
    async with scripted_http() as peer:
        answer = {"error": error, "error_description": "canary <script>", "client_id": "id"}
        with pytest.raises(OAuthMetadataInvalid) as raised:
            await register(peer, document(answer, status))
        assert str(status) in raised.value.detail
        assert ("invalid_redirect_uri" in raised.value.detail) is is_named
        assert "canary" not in raised.value.detail


async def test_a_registration_endpoint_that_cannot_answer_is_unavailable() -> None:
    async with scripted_http() as peer:
        with pytest.raises(ServerUnavailable) as raised:
            await register(peer, Reply(503))
        assert raised.value.facts["httpStatus"] == 503
