"""The authorization that a definition's client credentials give, without a person. SPEC §oauth.

RFC 6749 §4.4; MCP extension ``io.modelcontextprotocol/oauth-client-credentials``. Each token begins with discovery,
so that endpoints that have changed are seen; a refresh token is not used: the credentials are there.
"""

import time
from functools import partial

from anyio.abc import TaskGroup
from typing_extensions import override

from app.connections.oauth.authorization import Clock, Grant, ServerAuthorization, new_identity
from app.connections.oauth.clients import client_for
from app.connections.oauth.discovery import discover
from app.connections.oauth.fetch import Fetcher
from app.connections.oauth.scopes import scopes_to_ask
from app.connections.oauth.tokens import TokenRefusedError, TokenSet, client_credentials
from app.core.answers import HttpRefusal
from app.core.challenge import BearerChallenge, parse_challenge
from app.core.definitions import ClientCredentials
from app.core.oauth_problems import OAuthClientCredentialsFailed
from app.core.problem import Problem
from app.core.problems import AuthorizationRefused


class MachineAuthorization(ServerAuthorization):
    """What the client itself was granted."""

    def __init__(
        self,
        fetcher: Fetcher,
        config: ClientCredentials,
        *,
        client_secret: str,
        clock: Clock = time.monotonic,
    ) -> None:
        """Take the definition's authorization and its client secret, expanded."""
        super().__init__(fetcher, clock=clock)
        self._config = config
        self._client_secret = client_secret
        self._identity = new_identity()

    @property
    @override
    def has_token(self) -> bool:
        """Nothing is lost: another one can be had at any time."""
        return False

    @override
    async def renewed(
        self, refused: TokenSet | None, refusal: HttpRefusal, group: TaskGroup
    ) -> Problem | None:
        """Ask for a token with the credentials, once for all who wait; after a 403 with the scopes it wants besides."""
        challenge = parse_challenge(refusal.bearer_challenge)
        if refusal.status == 403 and not challenge.wants_scope:
            return None
        return await self._share(group, partial(self._obtain, challenge))

    @override
    def standing(self, refused: TokenSet | None, refusal: HttpRefusal) -> HttpRefusal:
        """Return the refusal with its Problem: nobody can be asked to do better."""
        if refusal.problem is not None:
            return refusal
        reason = f"it refuses the token of the client credentials (HTTP status {refusal.status})"
        problem = AuthorizationRefused(self.server, reason, http_status=refusal.status)
        return HttpRefusal(refusal.status, refusal.bearer_challenge, problem)

    @override
    def accepted(self, tokens: TokenSet | None) -> None:
        """There is nothing to remember."""

    async def _obtain(self, challenge: BearerChallenge) -> None:
        """Have a token.

        Raises:
            OAuthClientCredentialsFailed: the authorization server gives none for these credentials.
            OAuthMetadataInvalid: the server or its authorization server describes itself in no way that can be used.
            ServerUnavailable: one of them gives no answer.
        """
        grant = self._grant
        # What gave a token once is where the credentials belong; no other one gets to see them.
        issuer = grant.server.issuer if grant is not None else None
        server = await discover(self.fetcher, challenge, self._config, issuer=issuer)
        scopes = scopes_to_ask(server, challenge, self._config, before=grant.scopes if grant else ())
        client = await client_for(self.fetcher, server, self._config, client_secret=self._client_secret)
        try:
            tokens = await client_credentials(self.fetcher, server, client, scopes)
        except TokenRefusedError as refused:
            code = f" ({refused.code})" if refused.code else ""
            reason = f"its authorization server gives no token for them{code}"
            raise OAuthClientCredentialsFailed(
                self.server, reason, client_id=self._config.client_id
            ) from None
        self._grant = Grant(self._identity, server, client, scopes, tokens)
