"""interactive.py: sign-ins one after another, what they ask for, when they end, and refreshes; real peers."""

from urllib.parse import parse_qs, urlsplit

import pytest

from app.core.answers import HttpRefusal, Result
from app.core.connection_state import ConnectionState
from app.core.oauth_problems import OAuthMetadataInvalid
from app.core.problems import AuthorizationRefused, ServerUnavailable
from app.ports import AuthorizationDemanded
from tests.support.authorization_server import authorization_server
from tests.support.authorized_house import (
    PRE_REGISTERED,
    authorized_house,
    complete,
    echo,
)

pytestmark = pytest.mark.spec("oauth")


def scope_of(url: str) -> set[str]:
    return set(" ".join(parse_qs(urlsplit(url).query).get("scope", [""])).split())


def client_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["client_id"][0]


# Sign-ins


@pytest.mark.parametrize("added", ["x" * 16_384, "secret", "token", "x&client_id=another"])
async def test_a_sign_in_page_whose_url_is_huge_ambiguous_or_has_a_secret_is_shown_to_nobody(
    added: str,
) -> None:
    async with authorized_house() as home:
        connection = await home.signed_in(PRE_REGISTERED)
        secrets = {"secret": home.environment["SECRET"], "token": home.issuer.tokens[0].access_token}
        home.issuer.revoke_all()
        page = f"{home.issuer.issuer}/authorize?of={secrets.get(added, added)}"
        home.issuer.extra_metadata = {"authorization_endpoint": page}
        refused = await home.refused(PRE_REGISTERED, authorization=connection.authorization)
        assert isinstance(refused, OAuthMetadataInvalid)
        assert secrets.get(added, added) not in refused.detail


async def test_a_client_that_signed_in_once_is_used_again_and_one_that_did_not_is_not() -> None:
    async with authorized_house() as home:
        first, second = await home.demanded(), await home.demanded()
        assert client_of(first.url) != client_of(second.url)
        await complete(second)
        connection = await home.open(authorization=second.authorization)
        assert connection.authorization is second.authorization
        home.issuer.revoke_all()
        again = await home.demanded(authorization=second.authorization)
        assert client_of(again.url) == client_of(second.url)
        assert home.issuer.count("register") == 2
        await complete(again)
        await home.open(authorization=again.authorization)
        home.issuer.clients.pop(client_of(again.url))
        home.issuer.expire_all()
        third = await home.demanded(authorization=again.authorization)
        assert home.issuer.count("register") == 3
        await complete(third)
        await home.open(authorization=third.authorization)


async def test_scopes_add_up_and_a_sign_in_that_adds_nothing_is_not_asked_for() -> None:
    async with authorized_house() as home:
        home.server.base_scope = "a"
        first = await home.demanded()
        assert scope_of(first.url) == {"a"}
        await complete(first)
        home.server.base_scope = "b"
        second = await home.demanded(authorization=first.authorization)
        assert scope_of(second.url) == {"a", "b"}
        await complete(second)
        home.issuer.tokens[-1].scope = "a"
        problem = await home.refused(authorization=second.authorization)
        assert isinstance(problem, AuthorizationRefused)
        assert home.issuer.count("authorize") == 2
        assert not second.authorization.has_token
        # Who asks again later is not held to that.
        third = await home.demanded(authorization=second.authorization)
        await complete(third)
        await home.open(authorization=third.authorization)


async def test_a_brand_new_token_that_is_refused_ends_it() -> None:
    async with authorized_house() as home:
        attempt = await home.demanded()
        await complete(attempt)
        home.issuer.revoke_all()
        assert isinstance(await home.refused(authorization=attempt.authorization), AuthorizationRefused)


async def test_a_server_that_always_wants_another_scope_gets_three_sign_ins() -> None:
    async with authorized_house() as home:
        authorization = None
        for scope in ("a", "b", "c"):
            home.server.base_scope = scope
            attempt = await home.demanded(authorization=authorization)
            await complete(attempt)
            authorization = attempt.authorization
        home.server.base_scope = "d"
        assert isinstance(await home.refused(authorization=authorization), AuthorizationRefused)
        assert home.issuer.count("authorize") == 3


async def test_sign_ins_are_counted_until_the_server_serves() -> None:
    async with authorized_house() as home:
        authorization = None
        for scope in ("a", "b", "c", "d", "e"):
            home.server.base_scope = scope
            attempt = await home.demanded(authorization=authorization)
            await complete(attempt)
            authorization = attempt.authorization
            await home.open(authorization=authorization)
        assert home.issuer.count("authorize") == 5


async def test_another_authorization_server_gets_nothing_of_the_first() -> None:
    async with authorized_house() as home, authorization_server() as other:
        connection = await home.signed_in()
        home.issuer.expire_all()
        home.server.authorization = other
        assert isinstance(await echo(connection), HttpRefusal)
        assert home.issuer.count("token:refresh_token") == 1
        attempt = await home.demanded(authorization=connection.authorization)
        assert attempt.url.startswith(f"{other.issuer}/authorize?")
        assert other.count("register") == 1
        await complete(attempt)
        await home.open(authorization=attempt.authorization)
        shown = str([(asked.parameters, asked.headers) for asked in other.asked])
        assert not any(secret in shown for secret in home.issuer.secrets)


async def test_credentials_that_were_registered_before_go_to_the_issuer_that_took_them_first_alone() -> None:
    async with authorized_house() as home, authorization_server() as other:
        connection = await home.signed_in(PRE_REGISTERED)
        home.issuer.revoke_all()
        home.server.authorization = other
        answer = await echo(connection)
        assert isinstance(answer, HttpRefusal)
        assert connection.state is ConnectionState.AUTHORIZATION_REQUIRED
        with pytest.raises(OAuthMetadataInvalid):
            await connection.begin_authorization(answer.bearer_challenge)
        assert other.asked == []


# Refreshes


async def test_refreshes_go_on_as_refresh_tokens_rotate_or_stay() -> None:
    for rotates in (True, False):
        async with authorized_house() as home:
            home.issuer.rotates = rotates
            connection = await home.signed_in()
            for _ in range(3):
                home.issuer.expire_all()
                assert isinstance(await echo(connection), Result)
            spent = [asked.parameters["refresh_token"] for asked in home.issuer.of("token:refresh_token")]
            assert len(set(spent)) == (3 if rotates else 1)
            resources = {asked.parameters["resource"] for asked in home.issuer.of("token:refresh_token")}
            assert resources == {home.server.resource}


async def test_a_refresh_that_fails_for_now_keeps_the_refresh_token_and_the_connection() -> None:
    async with authorized_house() as home:
        connection = await home.signed_in()
        home.issuer.expire_all()
        home.issuer.failures = [503]
        answer = await echo(connection)
        assert isinstance(answer, HttpRefusal)
        assert isinstance(answer.problem, ServerUnavailable)
        assert (connection.state, home.changes) == (ConnectionState.READY, [])
        assert isinstance(await echo(connection), Result)
        assert home.issuer.count("token:refresh_token") == 2


async def test_a_preparation_whose_refresh_fails_for_now_asks_nobody_to_sign_in() -> None:
    async with authorized_house() as home:
        attempt = await home.demanded()
        await complete(attempt)
        home.issuer.expire_all()
        home.issuer.failures = [503, 503]
        problem = await home.refused(authorization=attempt.authorization)
        assert isinstance(problem, ServerUnavailable)
        assert attempt.authorization.has_token
        assert home.issuer.count("token:refresh_token") == 1


async def test_a_revoked_grant_needs_a_person() -> None:
    async with authorized_house() as home:
        connection = await home.signed_in()
        home.issuer.revoke_all()
        answer = await echo(connection)
        assert isinstance(answer, HttpRefusal)
        assert (answer.status, answer.problem) == (401, None)
        assert connection.state is ConnectionState.AUTHORIZATION_REQUIRED
        assert connection.authorization is not None
        assert not connection.authorization.has_token


async def test_a_workspace_that_hydrates_asks_nobody_and_says_nothing_to_any_authorization_server() -> None:
    async with authorized_house() as home:
        with pytest.raises(AuthorizationDemanded) as raised:
            await home.open(is_explicit=False)
        assert raised.value.attempt is None
        assert home.issuer.asked == []
        assert home.server.metadata_requests == []
        assert home.server.bearers == [""]


async def test_nothing_of_a_secret_is_left_in_what_is_shown(capfd: pytest.CaptureFixture[str]) -> None:
    async with authorized_house() as home:
        connection = await home.signed_in(PRE_REGISTERED)
        home.issuer.expire_all()
        await echo(connection)
        home.issuer.revoke_all()
        await echo(connection)
        assert connection.problem is not None
        shown = repr([connection, connection.authorization, connection.problem.document()])
        shown += "".join(capfd.readouterr())
        used = [secret for secret in home.issuer.secrets if "client-secret-2" not in secret]
        assert not any(secret in shown for secret in used)
        assert all(home.mask.mask(secret) == "***" for secret in used[:1] + used[2:]), used
