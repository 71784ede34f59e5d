"""What one connection does with its attachment's authorization, request by request. SPEC §oauth.

The authorization may outlive the connection and serve its successor; what is here does not. Tasks that renew tokens
live in the connection's group, so that no request that leaves takes a refresh with it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import anyio
from anyio.abc import TaskGroup

from app.connections.oauth.attempt import Attempt
from app.connections.oauth.authorization import ServerAuthorization
from app.connections.oauth.interactive import InteractiveAuthorization
from app.connections.oauth.tokens import TokenSet
from app.core.answers import Answer, HttpRefusal
from app.core.problem import Problem
from app.core.problems import AuthorizationRefused, ServerUnavailable

SENDS_MAX: Final = 4
"""How often one request is sent while it is refused: with what it had, and what each of others and we renewed."""


class ConnectionAuthorization:
    """The authorization as one connection uses it."""

    def __init__(self, authorization: ServerAuthorization, group: TaskGroup) -> None:
        self.authorization = authorization
        """The attachment's, which a later connection may use too."""
        self.group = group
        self.demand: HttpRefusal | None = None
        """The last refusal that only a person can do something about."""
        self.on_demand: Callable[[HttpRefusal], None] = lambda _refusal: None
        """Is called, without awaiting, with each of those."""
        self.on_granted: Callable[[], None] = lambda: None
        """Is called, without awaiting, where a sign-in of this connection was completed."""

    def request(self) -> "AuthorizedRequest":
        """Return the authorization of one request."""
        return AuthorizedRequest(self)

    def grant(self) -> str:
        """Return the name of what is granted now."""
        return self.authorization.identity

    def settle(self) -> None:
        """Take note that the server serves."""
        if isinstance(self.authorization, InteractiveAuthorization):
            self.authorization.settle()

    def stands(self, refused: TokenSet | None, refusal: HttpRefusal) -> HttpRefusal:
        """Take note that a request stays refused; return the refusal as it is told."""
        told = self.authorization.standing(refused, refusal)
        if told.problem is None:
            self.demand = told
            self.on_demand(told)
        return told

    async def begin(self, challenge: str | None, *, timeout_ms: int) -> Attempt:
        """Return a sign-in that satisfies the challenge.

        Raises:
            AuthorizationRefused: no person can give what is demanded.
            OAuthMetadataInvalid: the server or its authorization server describes itself in no way that can be used.
            ServerUnavailable: one of them gives no answer, or none in time.
        """
        authorization = self.authorization
        if not isinstance(authorization, InteractiveAuthorization):
            raise AuthorizationRefused(authorization.server, "nobody can sign in for its client credentials")
        with anyio.move_on_after(timeout_ms / 1000):
            return await authorization.begin(challenge, on_granted=self.on_granted)
        reason = "a sign-in could not be begun in time (PLURNK_MCP_CONNECT_TIMEOUT)"
        raise ServerUnavailable(authorization.server, "http", reason)

    async def begin_first(self, challenge: str | None, *, timeout_ms: int) -> Attempt:
        """Return a sign-in without which there will be no connection; see ``begin``.

        What was granted before is given up where it leads nowhere, so that whoever asks again begins from the first.

        Raises:
            Problem: as ``begin``.
        """
        try:
            return await self.begin(challenge, timeout_ms=timeout_ms)
        except AuthorizationRefused:
            if isinstance(self.authorization, InteractiveAuthorization):
                self.authorization.start_over()
            raise


class AuthorizedRequest:
    """The authorization of one request. Implements ``transport.RequestAuthorization``."""

    def __init__(self, connection: ConnectionAuthorization) -> None:
        self._connection = connection
        self._authorization = connection.authorization
        self._shown: TokenSet | None = None
        self._problem: Problem | None = None
        self._sends = 0
        self._renewed_for: set[int] = set()

    async def header(self) -> str | None:
        """Return the header that shows the current token; none where there is none that may be good."""
        self._sends += 1
        try:
            self._shown = await self._authorization.current(self._connection.group)
        except Problem as problem:
            # The server has the first word: it may not want a token for this.
            self._shown, self._problem = self._authorization.tokens, problem
            return None
        return self._shown.header if self._shown is not None else None

    async def judged(self, answer: Answer, peer: str | None) -> Answer | None:
        """Return the answer that stands, or None where the request goes again; see ``RequestAuthorization``."""
        if peer is not None:
            self._authorization.fetcher.saw_peer(peer)
        if not isinstance(answer, HttpRefusal) or answer.status not in {401, 403}:
            self._authorization.accepted(self._shown)
            return answer
        if answer.status == 403 and answer.bearer_challenge is None:
            return answer
        is_first = answer.status not in self._renewed_for
        if not self._has_better() and is_first and self._problem is None:
            self._renewed_for.add(answer.status)
            self._problem = await self._authorization.renewed(self._shown, answer, self._connection.group)
        if self._has_better() and self._sends < SENDS_MAX:
            return None
        return self._connection.stands(self._shown, replace(answer, problem=self._problem))

    def _has_better(self) -> bool:
        """Return whether there are other tokens to show than those that were refused."""
        tokens = self._authorization.tokens
        return tokens is not None and tokens is not self._shown
