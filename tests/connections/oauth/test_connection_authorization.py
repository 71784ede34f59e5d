"""connection_authorization.py: requests that are refused at once, one after another, or for another reason."""

from typing import Any

import anyio
import pytest

from app.connections.oauth.connection_authorization import ConnectionAuthorization
from app.connections.oauth.interactive import InteractiveAuthorization
from app.connections.server_connection import ServerConnection
from app.core.answers import HttpRefusal, RequestNotSent, Result
from app.core.connection_state import ConnectionState
from app.core.oauth_problems import sign_in_required
from app.ports import Connection
from tests.support.authorized_house import AuthorizedHouse, authorized_house, complete, echo
from tests.support.eventually import eventually

pytestmark = pytest.mark.spec("oauth")
REFUSED = HttpRefusal(401, 'Bearer error="invalid_token"')


def authorization_of(connection: Connection) -> ConnectionAuthorization:
    assert isinstance(connection, ServerConnection)
    assert connection._authorization is not None
    return connection._authorization


async def calls(connection: Connection, count: int) -> list[Any]:
    """Return the answers to so many calls at once."""
    answers: list[Any] = []

    async def call() -> None:
        answers.append(await echo(connection))

    async with anyio.create_task_group() as group:
        for _ in range(count):
            group.start_soon(call)
    return answers


def refreshes(home: AuthorizedHouse) -> int:
    return home.issuer.count("token:refresh_token")


async def test_ten_calls_at_expiry_cost_one_refresh_and_are_each_executed_once() -> None:
    async with authorized_house() as home:
        connection = await home.signed_in()
        home.issuer.expire_all()
        assert [type(answer) for answer in await calls(connection, 10)] == [Result] * 10
        assert refreshes(home) == 1
        assert home.server.calls == ["echo"] * 10
        assert home.changes == []


async def test_ten_calls_whose_refresh_fails_for_now_share_that_failure_and_the_next_ones_go_through() -> (
    None
):
    async with authorized_house() as home:
        connection = await home.signed_in()
        home.issuer.expire_all()
        home.issuer.failures = [503]
        home.issuer.gates["token"] = anyio.Event()
        answers: list[Any] = []
        refused = home.server.refused

        async def call() -> None:
            answers.append(await echo(connection))

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(call)
            await eventually(lambda: home.server.refused == refused + 10)
            await anyio.wait_all_tasks_blocked()
            home.issuer.gates.pop("token").set()
        assert {answer.problem.code for answer in answers} == {"server-unavailable"}
        assert refreshes(home) == 1
        assert connection.state is ConnectionState.READY
        assert [type(answer) for answer in await calls(connection, 3)] == [Result] * 3


async def test_ten_calls_after_a_revocation_tell_once_that_a_person_is_needed() -> None:
    async with authorized_house() as home:
        connection = await home.signed_in()
        home.issuer.revoke_all()
        home.issuer.gates["token"] = anyio.Event()
        refused = home.server.refused
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(echo, connection)
            await eventually(lambda: home.server.refused == refused + 10)
            home.issuer.gates.pop("token").set()
        assert home.changes == [ConnectionState.AUTHORIZATION_REQUIRED]
        assert refreshes(home) == 1
        assert connection.problem is not None
        assert connection.problem.document() == sign_in_required("p").document()
        assert [entry.name for entry in connection.catalog.tools] == ["echo", "write", "admin"]
        with pytest.raises(RequestNotSent):
            await echo(connection)


async def test_a_request_that_is_refused_with_an_older_token_just_goes_again() -> None:
    async with authorized_house() as home:
        authorization = authorization_of(await home.signed_in())
        early, late = authorization.request(), authorization.request()
        shown = await early.header()
        assert await late.header() == shown
        assert await early.judged(REFUSED, None) is None
        assert await late.judged(REFUSED, None) is None
        assert await late.header() == await early.header() != shown
        assert refreshes(home) == 1


async def test_a_request_whose_token_is_good_waits_for_no_refresh() -> None:
    async with authorized_house() as home:
        connection = await home.signed_in()
        home.issuer.gates["token"] = anyio.Event()
        request = authorization_of(connection).request()
        await request.header()
        async with anyio.create_task_group() as group:
            group.start_soon(request.judged, REFUSED, None)
            await home.issuer.has_seen("token:refresh_token", 1)
            assert isinstance(await echo(connection), Result)
            home.issuer.gates.pop("token").set()


async def test_who_gives_up_while_it_is_refreshed_takes_nothing_from_the_others() -> None:
    async with authorized_house() as home:
        connection = await home.signed_in()
        home.issuer.expire_all()
        home.issuer.gates["token"] = anyio.Event()
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(echo, connection)
            await home.issuer.has_seen("token:refresh_token", 1)
            leaving.cancel_scope.cancel()
        home.issuer.gates.pop("token").set()
        assert isinstance(await echo(connection), Result)
        assert refreshes(home) == 1
        assert home.server.calls == ["echo"]


async def test_a_connection_that_is_retired_while_it_refreshes_has_sent_nothing() -> None:
    async with authorized_house() as home:
        connection = await home.signed_in()
        home.issuer.expire_all()
        home.issuer.gates["token"] = anyio.Event()
        faults: list[type[Exception]] = []

        async def call() -> None:
            try:
                await echo(connection)
            except RequestNotSent as fault:
                faults.append(type(fault))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await home.issuer.has_seen("token:refresh_token", 1)
            assert await connection.retire() is None
        assert faults == [RequestNotSent]
        home.issuer.gates.pop("token").set()


async def test_no_request_is_sent_for_ever() -> None:
    async with authorized_house() as home:
        authorization = authorization_of(await home.signed_in())
        request = authorization.request()
        sends = 0
        standing = None
        while standing is None:
            await request.header()
            sends += 1
            standing = await request.judged(REFUSED, None)
        assert (sends, refreshes(home)) == (2, 1)
        assert isinstance(authorization.authorization, InteractiveAuthorization)
        assert not authorization.authorization.has_token


@pytest.mark.parametrize("refusal", [HttpRefusal(403), HttpRefusal(404)], ids=["403", "404"])
async def test_what_is_no_challenge_demands_nothing(refusal: HttpRefusal) -> None:
    async with authorized_house() as home:
        authorization = authorization_of(await home.signed_in())
        request = authorization.request()
        await request.header()
        assert await request.judged(refusal, None) is refusal
        assert authorization.demand is None
        assert refreshes(home) == 0


# Sign-ins in place


async def test_a_missing_scope_is_the_one_call_s_matter_until_a_person_grants_it() -> None:
    async with authorized_house() as home:
        home.server.base_scope = "a"
        home.server.scopes_by_tool = {"write": "b"}
        connection = await home.signed_in()
        answer = await echo(connection, tool="write")
        assert isinstance(answer, HttpRefusal)
        assert (answer.status, answer.problem) == (403, None)
        assert refreshes(home) == 0
        assert isinstance(await echo(connection), Result)
        attempt = await connection.begin_authorization(answer.bearer_challenge)
        assert "scope=a%20b" in attempt.url or "scope=a+b" in attempt.url
        await complete(attempt)
        assert isinstance(await echo(connection, tool="write"), Result)
        assert attempt.authorization is connection.authorization
        assert home.changes == []
        assert home.issuer.count("register") == 1


async def test_a_connection_is_ready_once_a_person_has_signed_in_again() -> None:
    async with authorized_house() as home:
        connection = await home.signed_in()
        home.issuer.revoke_all()
        answer = await echo(connection)
        assert isinstance(answer, HttpRefusal)
        listed = len(home.server.bearers)
        attempt = await connection.begin_authorization(answer.bearer_challenge)
        await complete(attempt)
        assert (connection.state, connection.problem) == (ConnectionState.READY, None)
        assert isinstance(await echo(connection), Result)
        assert home.changes[:2] == [ConnectionState.AUTHORIZATION_REQUIRED, ConnectionState.READY]
        await eventually(lambda: len(home.server.bearers) >= listed + 2)  # the call, and a list
        assert await connection.retire() is None
        late = await connection.begin_authorization(None)
        await complete(late)
        assert connection.state is ConnectionState.CLOSED


async def test_an_authorization_server_that_hangs_holds_nobody_up_for_longer_than_a_preparation_may_take() -> (
    None
):
    async with authorized_house(connect_timeout_ms=300) as home:
        home.issuer.gates["metadata"] = anyio.Event()
        problem = await home.refused()
        assert problem.code == "server-unavailable"
        assert "PLURNK_MCP_CONNECT_TIMEOUT" in problem.detail
        home.issuer.gates.pop("metadata").set()
