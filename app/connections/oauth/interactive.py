"""The authorization that a person gives: registrations, sign-ins, refreshes. SPEC §oauth.

Each sign-in begins with discovery, so that an authorization server that has changed is seen. A client belongs to the
issuer that it was registered at and is shown to no other; one that nobody ever signed in with is not used again, for
its authorization server may have forgotten it, which only the person sees.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from anyio.abc import TaskGroup
from typing_extensions import override

from app.connections.oauth.attempt import Attempt
from app.connections.oauth.authorization import Clock, Grant, ServerAuthorization, new_identity
from app.connections.oauth.clients import OAuthClient, client_for
from app.connections.oauth.discovery import AuthorizationServer, discover
from app.connections.oauth.fetch import Fetcher
from app.connections.oauth.scopes import scopes_to_ask
from app.connections.oauth.tokens import TokenRefusedError, TokenSet, refresh
from app.core.answers import HttpRefusal
from app.core.challenge import parse_challenge
from app.core.definitions import InteractiveOAuth, OAuthPreRegistered
from app.core.oauth_problems import OAuthMetadataInvalid
from app.core.problem import Problem
from app.core.problems import AuthorizationRefused

URL_MAX: Final = 16 * 1024
"""Characters of the URL at which a person signs in."""
SIGN_INS_MAX: Final = 3
"""Sign-ins in a row that may end in another demand before the server served once: the first and two step-ups."""


class InteractiveAuthorization(ServerAuthorization):
    """What a person granted."""

    def __init__(
        self,
        fetcher: Fetcher,
        config: InteractiveOAuth,
        *,
        client_secret: str | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """Take the definition's authorization and its client secret, expanded."""
        super().__init__(fetcher, clock=clock)
        self._config = config
        self._client_secret = client_secret
        fetcher.secrets.add(client_secret)
        self._clients: dict[str, OAuthClient] = {}
        self._sign_ins = 0
        self._is_proven = False
        self._is_fruitless = False

    @property
    @override
    def has_token(self) -> bool:
        return self.tokens is not None

    @override
    async def renewed(
        self, refused: TokenSet | None, refusal: HttpRefusal, group: TaskGroup
    ) -> Problem | None:
        """Refresh, once for all who wait. A 403 is no matter of freshness: only a person can grant more."""
        if refusal.status != 401 or refused is None or refused.refresh_token is None:
            return None
        return await self._share(group, self._refresh)

    @override
    def standing(self, refused: TokenSet | None, refusal: HttpRefusal) -> HttpRefusal:
        if refusal.problem is not None:
            return refusal  # a refresh that may succeed later
        if refused is not None and not self._is_proven:
            self._is_fruitless = True
        if refusal.status == 401:
            self.drop(refused)
        return refusal

    @override
    def accepted(self, tokens: TokenSet | None) -> None:
        if tokens is not None and tokens is self.tokens:
            self._is_proven, self._is_fruitless = True, False

    def settle(self) -> None:
        """Take note that the server serves: sign-ins are counted afresh."""
        self._sign_ins = 0

    def start_over(self) -> None:
        """Show nothing of what was granted; the next sign-in is the first."""
        self._grant, self._sign_ins, self._is_fruitless = None, 0, False

    async def begin(self, challenge: str | None, *, on_granted: Callable[[], None] = lambda: None) -> Attempt:
        """Return a sign-in that satisfies the challenge; once completed, its tokens are this authorization's.

        ``on_granted`` is called then, without awaiting.

        Raises:
            AuthorizationRefused: the server refuses what was just granted and asks for nothing else, or never ends.
            OAuthMetadataInvalid: it, or its authorization server, describes itself in no way that can be used.
            ServerUnavailable: one of them gives no answer.
        """
        asked = parse_challenge(challenge)
        server = await discover(self.fetcher, asked, self._config, issuer=self._issuer())
        grant = (
            self._grant if self._grant is not None and self._grant.server.issuer == server.issuer else None
        )
        scopes = scopes_to_ask(server, asked, self._config, before=grant.scopes if grant else ())
        self._require_progress(grant, scopes)
        client = self._clients.get(server.issuer)
        if client is None:
            client = await client_for(self.fetcher, server, self._config, client_secret=self._client_secret)

        def granted(tokens: TokenSet) -> None:
            self._granted(server, client, scopes, tokens)
            on_granted()

        attempt = Attempt(
            self,
            server,
            client,
            redirect_url=self._config.redirect_url,
            scopes=scopes,
            on_tokens=granted,
            on_client_refused=lambda: self._forget(client),
            clock=self._clock,
        )
        self._require_showable(attempt.url)
        return attempt

    def _require_showable(self, url: str) -> None:
        """Return where the URL, much of which its authorization server chose, can be listed and shown to anyone.

        Raises:
            OAuthMetadataInvalid: it cannot.
        """
        if len(url) > URL_MAX:
            raise OAuthMetadataInvalid(self.server, "the URL of its sign-in page is too long")
        if self.fetcher.secrets.are_in(url):
            raise OAuthMetadataInvalid(self.server, "the URL of its sign-in page has a secret in it")
        names = [name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)]
        if len(names) != len(set(names)):  # RFC 6749 §3.1: which one counts is anybody's guess
            raise OAuthMetadataInvalid(self.server, "the URL of its sign-in page has a parameter twice")

    def _issuer(self) -> str | None:
        """Return the issuer that the definition's own credentials have proved to belong to; None for all others."""
        return next(iter(self._clients), None) if isinstance(self._config, OAuthPreRegistered) else None

    def _require_progress(self, grant: Grant | None, scopes: tuple[str, ...]) -> None:
        """Return where another sign-in may come to something.

        Raises:
            AuthorizationRefused: it may not; whoever asks again later is not held to that.
        """
        is_same = grant is not None and self._is_fruitless and set(scopes) <= set(grant.asked)
        if not is_same and self._sign_ins < SIGN_INS_MAX:
            return
        self._sign_ins, self._is_fruitless = 0, False
        reason = (
            "it refuses the token that it was just granted and asks for nothing else"
            if is_same
            else f"it demanded {SIGN_INS_MAX} sign-ins in a row and served none of them"
        )
        raise AuthorizationRefused(self.server, reason)

    def _granted(
        self, server: AuthorizationServer, client: OAuthClient, asked: tuple[str, ...], tokens: TokenSet
    ) -> None:
        self._grant = Grant(new_identity(), server, client, asked, tokens)
        self._clients[server.issuer] = client
        self._sign_ins += 1
        self._is_proven = self._is_fruitless = False

    def _forget(self, client: OAuthClient) -> None:
        """Register anew next time: the authorization server does not know this client any more."""
        if self._clients.get(client.issuer) is client:
            del self._clients[client.issuer]

    async def _refresh(self) -> None:
        """Have the next tokens, or none where the refresh token is of no use any more.

        Raises:
            ServerUnavailable: there is no answer; the refresh token is kept.
        """
        grant = self._grant
        if grant is None or grant.tokens is None:
            return
        tokens: TokenSet | None = None
        try:
            tokens = await refresh(self.fetcher, grant.server, grant.client, grant.tokens)
        except OAuthMetadataInvalid:
            pass  # whatever the answer was, the refresh token may be used up
        except TokenRefusedError as refused:
            if refused.code == "invalid_client":
                self._forget(grant.client)
        if self._grant is grant:
            self._grant = replace(grant, tokens=tokens)
