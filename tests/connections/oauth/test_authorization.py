"""authorization.py: which tokens are shown when, by a clock of the test's; a real authorization server."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import TaskGroup
from yarl import URL

from app.connections.oauth.authorization import ServerAuthorization
from app.connections.oauth.connection_authorization import (
    SENDS_MAX,
    AuthorizedRequest,
    ConnectionAuthorization,
)
from app.connections.oauth.fetch import Fetching
from app.connections.oauth.interactive import InteractiveAuthorization
from app.core.answers import HttpRefusal, Result
from app.core.definitions import OAuthDynamic
from app.core.masking import Mask
from app.core.oauth_problems import OAuthMetadataInvalid
from app.ports import Authorization
from app.settings import Settings
from tests.support.authorization_server import REDIRECT, AuthorizationServer, authorization_server
from tests.support.authorized_house import complete
from tests.support.protected_server import protected_server

pytestmark = pytest.mark.spec("oauth")


class House:
    """An authorization for which a person has signed in, and a clock that only jumps."""

    def __init__(self, issuer: AuthorizationServer, url: str, group: TaskGroup) -> None:
        self.issuer = issuer
        self.ahead = 0.0
        fetcher = Fetching(Settings(), Mask()).of("p", URL(url))
        config = OAuthDynamic.model_validate({"type": "oauth", "redirectUrl": REDIRECT})
        self.authorization = InteractiveAuthorization(
            fetcher, config, clock=lambda: time.monotonic() + self.ahead
        )
        self.connection = ConnectionAuthorization(self.authorization, group)

    async def sign_in(self) -> None:
        await complete(await self.authorization.begin(None))

    def request(self) -> AuthorizedRequest:
        return self.connection.request()


@asynccontextmanager
async def house() -> AsyncGenerator[House]:
    async with authorization_server() as issuer, protected_server(issuer) as server:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                yield House(issuer, server.url, group)
                group.cancel_scope.cancel()


def fits(_kind: type[Authorization]) -> None:
    """Be judged by the type checker."""


def test_it_is_the_port() -> None:
    fits(ServerAuthorization)


async def test_a_token_that_has_expired_is_renewed_before_it_is_shown_once_for_all() -> None:
    async with house() as home:
        await home.sign_in()
        before = home.authorization.identity
        first = await home.request().header()
        home.ahead = 3590.0
        assert await home.request().header() == first
        home.ahead = 3600.0
        shown: list[str | None] = []

        async def show() -> None:
            shown.append(await home.request().header())

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(show)
        assert len(set(shown)) == 1
        assert shown[0] == f"Bearer {home.issuer.tokens[-1].access_token}" != first
        assert home.issuer.count("token:refresh_token") == 1
        assert home.authorization.identity == before


async def test_a_token_that_has_expired_and_cannot_be_renewed_is_not_shown() -> None:
    async with house() as home:
        home.issuer.issues_refresh_tokens = False
        await home.sign_in()
        assert home.authorization.has_token
        home.ahead = 3600.0
        assert await home.request().header() is None
        assert not home.authorization.has_token


async def test_a_token_without_an_end_is_shown_for_ever() -> None:
    async with house() as home:
        home.issuer.tells_lifetime = False
        await home.sign_in()
        home.ahead = 1e9
        assert await home.request().header() is not None
        assert home.issuer.count("token:refresh_token") == 0


async def test_where_the_renewal_fails_for_now_the_server_is_asked_without_and_nobody_has_to_sign_in() -> (
    None
):
    async with house() as home:
        await home.sign_in()
        home.ahead = 3600.0
        home.issuer.failures = [503]
        request = home.request()
        assert await request.header() is None
        answer = await request.judged(HttpRefusal(401, "Bearer"), None)
        assert isinstance(answer, HttpRefusal)
        assert answer.problem is not None
        assert answer.problem.code == "server-unavailable"
        assert home.connection.demand is None
        assert home.authorization.has_token
        assert home.issuer.count("token:refresh_token") == 1
        # A server that wants no token for this answers all the same.
        home.issuer.failures = [503]
        request = home.request()
        assert await request.header() is None
        assert await request.judged(Result({}, 1), None) == Result({}, 1)


async def test_every_sign_in_is_another_grant() -> None:
    async with house() as home:
        assert home.authorization.identity == ""
        names = set[str]()
        for _ in range(3):
            await home.sign_in()
            names.add(home.authorization.identity)
        assert len(names) == 3


async def test_tokens_that_were_refused_late_take_no_later_ones_with_them() -> None:
    async with house() as home:
        await home.sign_in()
        old = home.authorization.tokens
        await home.sign_in()
        home.authorization.drop(old)
        home.authorization.drop(None)
        assert home.authorization.has_token
        home.authorization.drop(home.authorization.tokens)
        assert not home.authorization.has_token


async def test_a_refresh_that_ends_after_a_sign_in_changes_nothing_of_that() -> None:
    async with house() as home:
        await home.sign_in()
        gate = home.issuer.gates["token:refresh_token"] = anyio.Event()
        request, granted = home.request(), home.authorization.tokens
        await request.header()
        async with anyio.create_task_group() as group:
            group.start_soon(request.judged, HttpRefusal(401, "Bearer"), None)
            await home.issuer.has_seen("token:refresh_token", 1)
            await home.sign_in()
            assert home.authorization.tokens is not granted
            granted = home.authorization.tokens
            gate.set()
        assert home.authorization.tokens is granted


async def test_a_request_that_is_always_late_is_sent_four_times() -> None:
    async with house() as home:
        await home.sign_in()
        request, sends, standing = home.request(), 0, None
        while standing is None:
            await request.header()
            sends += 1
            home.authorization.settle()
            await home.sign_in()
            standing = await request.judged(HttpRefusal(401, "Bearer"), None)
        assert sends == SENDS_MAX == 4
        assert home.issuer.count("token:refresh_token") == 0


async def test_a_server_that_answered_from_a_public_address_may_name_no_private_one() -> None:
    async with house() as home:
        await home.request().judged(HttpRefusal(403), "127.0.0.1")
        await home.sign_in()
        await home.request().judged(HttpRefusal(403), "93.184.216.34")
        with pytest.raises(OAuthMetadataInvalid):
            await home.sign_in()
