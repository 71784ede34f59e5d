"""What one attachment was granted, and how that is renewed, whoever needs it. SPEC §oauth.

Implements ``ports.Authorization``; how a token is had in the first place is ``interactive``'s and ``machine``'s, what
one request does with it ``connection_authorization``'s. Everything is in memory and dies with the object. A token goes
to the definition's URL alone, a refresh token to the issuer that gave it alone.
"""

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from anyio.abc import TaskGroup

from app.connections.oauth.clients import OAuthClient
from app.connections.oauth.discovery import AuthorizationServer
from app.connections.oauth.fetch import Fetcher
from app.connections.oauth.renewal import SharedRenewal
from app.connections.oauth.tokens import TokenSet
from app.core.answers import HttpRefusal
from app.core.problem import Problem
from app.core.scope_names import union

Clock: TypeAlias = Callable[[], float]
"""The clock of ``TokenSet.expires_at``."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One sign-in, or one use of client credentials, and the tokens that are left of it."""

    identity: str
    """Another one for every grant; the same after a refresh."""
    server: AuthorizationServer
    client: OAuthClient
    asked: tuple[str, ...]
    """The scopes that were asked for."""
    tokens: TokenSet | None = field(repr=False)
    """None once they are of no use and nothing renews them."""

    @property
    def scopes(self) -> tuple[str, ...]:
        """What was asked for and what was granted."""
        return union(self.asked, self.tokens.scopes if self.tokens is not None else ())


class ServerAuthorization(ABC):
    """The life of one attachment's tokens. Nobody holds anything of it while a request is under way."""

    def __init__(self, fetcher: Fetcher, *, clock: Clock = time.monotonic) -> None:
        """Take what speaks to the authorization servers of one definition."""
        self.fetcher = fetcher
        self._clock = clock
        self._grant: Grant | None = None
        self._renewal = SharedRenewal()

    @property
    def server(self) -> str:
        """The server's name in its workspace."""
        return self.fetcher.server

    @property
    def identity(self) -> str:
        """Names the grant, for those who must not mix up what two of them were answered; empty without one."""
        return self._grant.identity if self._grant is not None else ""

    @property
    def tokens(self) -> TokenSet | None:
        """What there is to show, good or not."""
        return self._grant.tokens if self._grant is not None else None

    @property
    @abstractmethod
    def has_token(self) -> bool:
        """Whether it holds a token that would be lost with it."""

    async def current(self, group: TaskGroup) -> TokenSet | None:
        """Return the tokens to show now; waits only where they have expired and are renewed.

        Raises:
            Problem: they cannot be renewed now.
        """
        tokens = self.tokens
        if tokens is None or tokens.expires_at is None or self._clock() < tokens.expires_at:
            return tokens
        if tokens.refresh_token is None:
            self.drop(tokens)
            return None
        problem = await self.renewed(tokens, HttpRefusal(401), group)
        if problem is not None:
            raise problem
        return self.tokens

    @abstractmethod
    async def renewed(
        self, refused: TokenSet | None, refusal: HttpRefusal, group: TaskGroup
    ) -> Problem | None:
        """Have other tokens than the refused ones on return, where nobody need be asked for that.

        Returns why there are none, where that is worth telling; ``tokens`` says whether there are.
        """

    @abstractmethod
    def standing(self, refused: TokenSet | None, refusal: HttpRefusal) -> HttpRefusal:
        """Take note that there is nothing better to show than what was refused; return the refusal as it is told."""

    @abstractmethod
    def accepted(self, tokens: TokenSet | None) -> None:
        """Take note that the server did what it was asked, shown these tokens."""

    def drop(self, tokens: TokenSet | None) -> None:
        """Show these tokens no more; later ones stay."""
        if self._grant is not None and tokens is not None and self._grant.tokens is tokens:
            self._grant = replace(self._grant, tokens=None)

    async def _share(self, group: TaskGroup, renew: Callable[[], Awaitable[None]]) -> Problem | None:
        problem = await self._renewal.join(group, renew)
        return None if problem is None else problem.again()


def new_identity() -> str:
    """Return the identity of a grant that is made now."""
    return secrets.token_hex(16)
