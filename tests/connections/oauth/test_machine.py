"""machine.py: client credentials from the first 401 to the last; a real authorization server."""

import anyio
import pytest

from app.core.answers import HttpRefusal, Result
from app.core.connection_state import ConnectionState
from app.core.oauth_problems import OAuthClientCredentialsFailed, OAuthMetadataInvalid
from app.core.problems import AuthorizationRefused, ServerUnavailable
from tests.support.authorization_server import authorization_server
from tests.support.authorized_house import MACHINE, authorized_house, echo, guard
from tests.support.scripted_http import Reply, scripted_http

pytestmark = pytest.mark.spec("oauth")


@pytest.mark.parametrize("is_explicit", [True, False], ids=["asked-for", "hydrated"])
async def test_nobody_is_asked_and_nothing_is_lost_with_it(*, is_explicit: bool) -> None:
    async with authorized_house() as home:
        connection = await home.open(MACHINE, is_explicit=is_explicit)
        assert isinstance(await echo(connection), Result)
        assert [asked.endpoint for asked in home.issuer.asked] == ["metadata", "token"]
        token = home.issuer.of("token")[0]
        assert token.headers["authorization"].startswith("Basic ")
        assert token.parameters == {
            "grant_type": "client_credentials",
            "client_id": "machine",
            "resource": home.server.resource,
        }
        assert connection.authorization is not None
        assert not connection.authorization.has_token
        with pytest.raises(AuthorizationRefused):
            await connection.begin_authorization(None)


async def test_what_the_authorization_server_refuses_or_is_not_is_told_with_the_client() -> None:
    async with authorized_house() as home:
        problem = await home.refused({**MACHINE, "clientId": "unknown"})
        assert isinstance(problem, OAuthClientCredentialsFailed)
        assert problem.facts["clientId"] == "unknown"
        assert "(invalid_client)" in problem.detail
        asked = home.issuer.count("token")
        problem = await home.refused({**MACHINE, "issuer": "https://other.example"})
        assert isinstance(problem, OAuthClientCredentialsFailed)
        home.issuer.auth_methods = ["none"]
        assert isinstance(await home.refused(MACHINE), OAuthClientCredentialsFailed)
        assert home.issuer.count("token") == asked
        home.issuer.auth_methods, home.issuer.failures = ["client_secret_basic"], [503]
        assert isinstance(await home.refused(MACHINE), ServerUnavailable)
        home.server.resource = "https://other.example/mcp"
        assert isinstance(await home.refused(MACHINE), OAuthMetadataInvalid)


async def test_ten_requests_with_a_token_that_ended_cost_one_more() -> None:
    async with authorized_house() as home:
        connection = await home.open(MACHINE)
        home.issuer.revoke_all()
        answers: list[object] = []

        async def call() -> None:
            answers.append(type(await echo(connection)))

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(call)
        assert answers == [Result] * 10
        assert home.issuer.count("token") == 2
        assert home.changes == []


async def test_a_scope_that_is_missing_is_asked_for_once_beside_the_others() -> None:
    async with authorized_house() as home:
        home.server.base_scope = "a"
        home.server.scopes_by_tool = {"write": "b", "admin": "c"}
        connection = await home.open(MACHINE)
        assert isinstance(await echo(connection, tool="write"), Result)
        scopes = [asked.parameters.get("scope") for asked in home.issuer.of("token")]
        assert scopes == ["a", "a b"]
        home.issuer.clients.pop("machine")
        answer = await echo(connection, tool="admin")
        assert isinstance(answer, HttpRefusal)
        assert answer.problem is not None
        assert answer.problem.code == "oauth-client-credentials-failed"
        assert isinstance(await echo(connection), Result)
        assert connection.state is ConnectionState.READY


async def test_an_authorization_server_that_changed_is_not_shown_the_credentials() -> None:
    async with authorized_house() as home, authorization_server() as other:
        connection = await home.open(MACHINE)
        home.issuer.revoke_all()
        home.server.authorization = other
        answer = await echo(connection)
        assert isinstance(answer, HttpRefusal)
        assert isinstance(answer.problem, OAuthClientCredentialsFailed)
        assert other.asked == []


async def test_a_token_that_is_refused_at_once_is_not_asked_for_for_ever() -> None:
    async with authorized_house() as home:
        home.issuer.token_lifetime = -1.0
        problem = await home.refused(MACHINE)
        assert isinstance(problem, AuthorizationRefused)
        assert problem.facts["httpStatus"] == 401
        assert home.issuer.count("token") == 1


async def test_an_authorization_server_that_fails_for_now_fails_the_one_call() -> None:
    async with authorized_house() as home:
        connection = await home.open(MACHINE)
        home.issuer.revoke_all()
        home.issuer.failures = [503]
        answer = await echo(connection)
        assert isinstance(answer, HttpRefusal)
        assert answer.problem is not None
        assert answer.problem.code == "server-unavailable"
        assert (connection.state, home.changes) == (ConnectionState.READY, [])
        assert isinstance(await echo(connection), Result)


async def test_another_error_in_a_403_is_nothing_that_a_token_would_mend() -> None:
    challenge = Reply(403, {"WWW-Authenticate": 'Bearer error="invalid_request"'})
    async with scripted_http({"tools/call": challenge}) as peer, authorized_house() as home:
        guard(peer, home.issuer)
        peer.answers["tools/call"] = challenge
        connection = await home.open(MACHINE, url=peer.url)
        answer = await echo(connection)
        assert isinstance(answer, HttpRefusal)
        assert isinstance(answer.problem, AuthorizationRefused)
        assert home.issuer.count("token") == 1
