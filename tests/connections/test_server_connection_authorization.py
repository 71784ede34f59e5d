"""server_connection.py: what a connection serves, watches and keeps around a sign-in. SPEC §oauth."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from app.core.answers import Answer, HttpRefusal, RequestNotSent, Result
from app.core.connection_state import ConnectionState
from app.ports import Connection
from tests.support.authorized_house import AuthorizedHouse, authorized_house, complete, echo, guard
from tests.support.eventually import eventually
from tests.support.fastmcp_oauth import fastmcp_oauth
from tests.support.scripted_http import Reply, ScriptedHttp, result, scripted_http
from tests.support.subscriptions import WATCHED, discovered, open_stream

pytestmark = pytest.mark.spec("oauth")
KEPT = {"ttlMs": 60_000, "cacheScope": "private"}
URI = "memo://mine"


@dataclass(frozen=True)
class Watched:
    """A guarded peer that offers list changes, and the connection to it."""

    home: AuthorizedHouse
    peer: ScriptedHttp
    connection: Connection

    async def read(self) -> Answer:
        return await self.connection.request("resources/read", {"uri": URI})


@asynccontextmanager
async def watched() -> AsyncGenerator[Watched]:
    answers = {
        "server/discover": discovered({**WATCHED, "resources": {}}),
        "resources/read": result({"contents": [{"uri": URI, "text": "mine"}], **KEPT}),
        "subscriptions/listen": open_stream(),
    }
    async with scripted_http(dict(answers)) as peer, authorized_house() as home:
        guard(peer, home.issuer)
        attempt = await home.demanded(url=peer.url)
        await complete(attempt)
        yield Watched(home, peer, await home.open(url=peer.url, authorization=attempt.authorization))


async def test_its_watch_ends_with_its_grant_and_begins_again_with_the_next() -> None:
    async with watched() as here:
        connection, peer = here.connection, here.peer
        assert connection.is_live
        here.home.issuer.revoke_all()
        answer = await echo(connection)
        assert isinstance(answer, HttpRefusal)
        assert not connection.is_live
        [stream] = peer.of("subscriptions/listen")
        await stream.gone.wait()
        before = len(peer.seen)
        await complete(await connection.begin_authorization(answer.bearer_challenge))
        await eventually(lambda: connection.is_live)
        await eventually(lambda: len(peer.of("tools/list")) == 2)
        assert len(peer.of("subscriptions/listen")) == 2
        assert {seen.headers["authorization"] for seen in peer.seen[before + 2 :]} == {
            f"Bearer {here.home.issuer.tokens[-1].access_token}"
        }
        assert await connection.retire() is None


async def test_a_stream_that_is_refused_refreshes_and_else_tells_that_a_person_is_needed() -> None:
    async with watched() as here:
        here.home.issuer.expire_all()
        here.peer.drop_connections()
        await eventually(lambda: here.home.issuer.count("token:refresh_token") == 1)
        await eventually(lambda: here.connection.is_live)
        assert here.connection.state is ConnectionState.READY
        here.home.issuer.revoke_all()
        here.peer.drop_connections()
        await here.home.has_told(ConnectionState.AUTHORIZATION_REQUIRED)
        assert not here.connection.is_live
        with pytest.raises(RequestNotSent):
            await here.read()


async def test_what_was_kept_for_one_grant_is_served_after_a_refresh_and_not_after_a_sign_in() -> None:
    async with watched() as here:
        for _ in range(2):
            assert isinstance(await here.read(), Result)
        assert len(here.peer.of("resources/read")) == 1
        here.home.issuer.expire_all()
        assert isinstance(await echo(here.connection), Result)
        assert isinstance(await here.read(), Result)
        assert len(here.peer.of("resources/read")) == 1
        await complete(await here.connection.begin_authorization(None))
        assert isinstance(await here.read(), Result)
        assert len(here.peer.of("resources/read")) == 2


async def test_a_list_that_is_refused_while_it_is_refreshed_needs_a_person_too() -> None:
    async with watched() as here:
        here.home.issuer.revoke_all()
        here.peer.answers["tools/list"] = Reply(401, {"WWW-Authenticate": "Bearer"})
        await complete(await here.connection.begin_authorization(None))
        await here.home.has_told(ConnectionState.AUTHORIZATION_REQUIRED)
        assert here.connection.catalog.tools[0].name == "echo"


async def test_fastmcp_s_own_authorization_server_lets_us_in() -> None:
    async with fastmcp_oauth() as peer, authorized_house() as home:
        attempt = await home.demanded(url=peer.url)
        await complete(attempt)
        connection = await home.open(url=peer.url, authorization=attempt.authorization)
        assert isinstance(await echo(connection), Result)
        peer.provider.access_tokens.clear()
        assert isinstance(await echo(connection), Result)
        peer.provider.access_tokens.clear()
        peer.provider.refresh_tokens.clear()
        assert isinstance(await echo(connection), HttpRefusal)
        assert connection.state is ConnectionState.AUTHORIZATION_REQUIRED
