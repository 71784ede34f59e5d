"""attempt.py: what a callback has to be, what a bad one costs, and what its code gives; a real authorization server."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import product
from urllib.parse import parse_qs, quote, urlsplit

import anyio
import pytest
from yarl import URL

from app.connections.oauth.attempt import LIFETIME, Attempt
from app.connections.oauth.fetch import Fetching
from app.connections.oauth.interactive import InteractiveAuthorization
from app.core.definitions import OAuthDynamic
from app.core.masking import Mask
from app.core.oauth_problems import OAuthCallbackInvalid
from app.core.problems import ServerUnavailable
from app.ports import AuthorizationAttempt
from app.settings import Settings
from tests.support.authorization_server import REDIRECT, AuthorizationServer, authorization_server
from tests.support.browser import callback_of
from tests.support.protected_server import protected_server

pytestmark = pytest.mark.spec("oauth")
CANARY = "canary<script>"


class House:
    """An authorization whose clock is the test's."""

    def __init__(self, issuer: AuthorizationServer, url: str) -> None:
        self.issuer = issuer
        self.mask = Mask()
        self.now = 0.0
        fetcher = Fetching(Settings(), self.mask).of("p", URL(url))
        config = OAuthDynamic.model_validate({"type": "oauth", "redirectUrl": REDIRECT})
        self.authorization = InteractiveAuthorization(fetcher, config, clock=lambda: self.now)

    async def begin(self, challenge: str | None = None) -> Attempt:
        return await self.authorization.begin(challenge)

    async def refused(self, attempt: Attempt, callback: str) -> OAuthCallbackInvalid:
        with pytest.raises(OAuthCallbackInvalid) as raised:
            await attempt.complete(callback)
        return raised.value


@asynccontextmanager
async def house() -> AsyncGenerator[House]:
    async with authorization_server() as issuer, protected_server(issuer) as server:
        with anyio.fail_after(20):
            yield House(issuer, server.url)


def fits(_kind: type[AuthorizationAttempt]) -> None:
    """Be judged by the type checker."""


def test_it_is_the_port() -> None:
    fits(Attempt)


def query_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query, strict_parsing=True).items()}


async def test_the_url_asks_for_one_code_for_one_resource_and_gives_nothing_away() -> None:
    async with house() as home:
        first, second = await home.begin('Bearer scope="a b"'), await home.begin()
        asked = query_of(first.url)
        state, challenge = asked.pop("state"), asked.pop("code_challenge")
        assert first.url.startswith(f"{home.issuer.issuer}/authorize?")
        assert asked == {
            "response_type": "code",
            "client_id": "registered-2",
            "redirect_uri": REDIRECT,
            "scope": "a b",
            "resource": str(home.authorization.fetcher.url),
            "code_challenge_method": "S256",
        }
        assert len(state) == len(challenge) == 43
        other = query_of(second.url)
        assert other["state"] != state
        assert other["code_challenge"] != challenge
        assert "scope" not in other
        assert not first.is_over


async def test_a_right_callback_gives_the_tokens_of_which_nothing_is_shown() -> None:
    async with house() as home:
        attempt = await home.begin()
        await attempt.complete(await callback_of(attempt.url))
        assert attempt.is_over
        assert attempt.authorization.has_token
        shown = repr(attempt.authorization._grant) + repr(attempt.authorization.tokens)
        code, access, refresh = home.issuer.secrets[-3:]
        verifier = home.issuer.of("token")[0].parameters["code_verifier"]
        assert not any(secret in shown for secret in home.issuer.secrets)
        assert [home.mask.mask(secret) for secret in (code, access, refresh, verifier)] == ["***"] * 4


FOREIGN = (
    "http://127.0.0.1:7777/other?code=c&state={state}",
    "https://127.0.0.1:7777/callback?code=c&state={state}",
    REDIRECT + "?code=c&state=" + quote(CANARY),
    REDIRECT + "?error=" + quote(CANARY) + "&error_description=" + quote(CANARY) + "&state=nope",
    REDIRECT + "?code=c&state=",
    REDIRECT + "?code=c&state=%00",
    REDIRECT + "?code=c&state={state}&state={state}",
    REDIRECT + "?code=c&state={state}#x",
    "nonsense",
)


async def test_a_foreign_callback_uses_nothing_up() -> None:
    async with house() as home:
        attempt = await home.begin()
        callback = await callback_of(attempt.url)
        for bad in FOREIGN:
            problem = await home.refused(attempt, bad.replace("{state}", query_of(callback)["state"]))
            assert not problem.is_over, bad
            assert not attempt.is_over, bad
            assert "canary" not in str(problem.document())
        assert home.issuer.count("token") == 0
        await attempt.complete(callback)


ISS = "&iss={iss}"
ELSEWHERE = "&iss=https%3A%2F%2Fevil.example"
BAD = (
    (True, "code=c&state={state}" + ELSEWHERE),
    (True, "code=c&state={state}" + ISS + "%2F"),
    (True, "code=c&state={state}"),
    (False, "code=c&state={state}" + ELSEWHERE),
    (True, "error=access_denied&state={state}" + ELSEWHERE),
    (True, "error=access_denied&state={state}"),
    (True, "error=access_denied&state={state}&error_description=canary" + ISS),
    (True, "error=canary&state={state}" + ISS),
    (True, "state={state}" + ISS),
    (True, "code=c&error=access_denied&state={state}" + ISS),
)
"""Whether the metadata promises ``iss``, and a callback."""


async def test_a_bad_callback_with_the_right_state_uses_the_attempt_up_and_no_code() -> None:
    async with house() as home:
        for tells, callback in BAD:
            home.issuer.tells_issuer = tells
            attempt = await home.begin()
            good = await callback_of(attempt.url)
            filled = callback.replace("{state}", query_of(good)["state"])
            filled = filled.replace("{iss}", quote(home.issuer.issuer, safe=""))
            problem = await home.refused(attempt, f"{REDIRECT}?{filled}")
            assert problem.is_over, callback
            assert attempt.is_over, callback
            assert "canary" not in str(problem.document())
            assert ("access_denied" in problem.detail) == ("access_denied" in filled and ISS in callback)
            assert (await home.refused(attempt, good)).is_over
        assert home.issuer.count("token") == 0
        assert not home.authorization.has_token


async def test_the_issuer_is_compared_wherever_it_is_sent_and_missed_only_where_it_was_promised() -> None:
    async with house() as home:
        for tells, sends in product([True, False], repeat=2):
            home.issuer.tells_issuer = sends
            home.issuer.extra_metadata = {"authorization_response_iss_parameter_supported": tells}
            attempt = await home.begin()
            callback = await callback_of(attempt.url)
            assert ("iss=" in callback) is sends
            asked = home.issuer.count("token")
            if tells and not sends:
                await home.refused(attempt, callback)
            else:
                await attempt.complete(callback)
            assert home.issuer.count("token") - asked == (0 if tells and not sends else 1)


async def test_after_ten_minutes_it_is_too_late() -> None:
    async with house() as home:
        attempt = await home.begin()
        callback = await callback_of(attempt.url)
        assert attempt.seconds_left == 600
        attempt.expires_at -= LIFETIME  # a wall clock that was set meanwhile
        home.now = LIFETIME.total_seconds() - 1
        assert (attempt.seconds_left, attempt.is_over) == (1, False)
        home.now = LIFETIME.total_seconds() + 1
        assert attempt.seconds_left == 0
        assert LIFETIME.total_seconds() == 600
        assert attempt.is_over
        assert (await home.refused(attempt, callback)).is_over
        assert home.issuer.count("token") == 0


async def test_of_two_completions_at_once_one_asks_for_tokens() -> None:
    async with house() as home:
        attempt = await home.begin()
        callback = await callback_of(attempt.url)
        home.issuer.gates["token"] = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(attempt.complete, callback)
            await home.issuer.has_seen("token", 1)
            assert attempt.is_over
            assert (await home.refused(attempt, callback)).is_over
            home.issuer.gates["token"].set()
        assert home.issuer.count("token") == 1
        assert attempt.authorization.has_token


async def test_a_completion_that_is_cancelled_leaves_no_token_and_no_second_try() -> None:
    async with house() as home:
        attempt = await home.begin()
        callback = await callback_of(attempt.url)
        home.issuer.gates["token"] = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(attempt.complete, callback)
            await home.issuer.has_seen("token", 1)
            group.cancel_scope.cancel()
        home.issuer.gates.pop("token").set()
        assert not attempt.authorization.has_token
        assert (await home.refused(attempt, callback)).is_over


async def test_a_code_that_is_refused_says_so_by_its_code_alone_and_a_failing_server_uses_it_up_too() -> None:
    async with house() as home:
        attempt = await home.begin()
        callback = await callback_of(attempt.url)
        home.issuer.codes.clear()
        problem = await home.refused(attempt, callback)
        assert problem.is_over
        assert "(invalid_grant)" in problem.detail
        attempt = await home.begin()
        callback = await callback_of(attempt.url)
        home.issuer.failures = [503]
        with pytest.raises(ServerUnavailable):
            await attempt.complete(callback)
        assert attempt.is_over
        assert not attempt.authorization.has_token


async def test_a_client_that_the_token_endpoint_does_not_know_any_more_is_registered_anew() -> None:
    async with house() as home:
        first = await home.begin()
        await first.complete(await callback_of(first.url))
        second = await home.begin()
        callback = await callback_of(second.url)
        assert home.issuer.count("register") == 1
        home.issuer.clients.pop(query_of(second.url)["client_id"])
        assert "(invalid_client)" in (await home.refused(second, callback)).detail
        third = await home.begin()
        await third.complete(await callback_of(third.url))
        assert home.issuer.count("register") == 2
