"""Pending: the sign-ins of a workspace that a person was asked for, one for each server at most. SPEC §oauth.

Says what waits, and until when; for a while also why what waited last waits no longer. Judging a callback is the
attempt's; what then goes on is a change's or an operation's. Everything here is called without awaiting.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeAlias

from app.core.json_value import JsonObject
from app.core.oauth_problems import (
    TOO_LATE,
    USED_UP,
    OAuthCallbackInvalid,
    OAuthNotPending,
    OAuthTargetConflict,
)
from app.core.problems import TooMany
from app.core.rfc3339 import rfc3339
from app.ports import AuthorizationAttempt
from app.workspaces.live_state import LiveState

if TYPE_CHECKING:
    from app.workspaces.change import Change


class Places:
    """How many sign-ins are pending in the daemon, over all workspaces. SPEC §limits."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = 0


@dataclass(frozen=True, slots=True)
class ParkedChange:
    """A change that goes on once a person has signed in; nothing of it is published or stored."""

    change: "Change"
    attempt: AuthorizationAttempt

    @property
    def name(self) -> str:
        """The server's name."""
        return self.change.name

    @property
    def action(self) -> str:
        """The kind of action that waits."""
        return self.change.action


@dataclass(frozen=True, slots=True)
class ParkedQuestion:
    """An operation that goes on once a person has signed in: the callback is the answer to its interrupt."""

    name: str
    action: str
    attempt: AuthorizationAttempt
    interrupt: str


Parked: TypeAlias = ParkedChange | ParkedQuestion

OVER_KEPT: Final = timedelta(minutes=10)
OVER_MAX: Final = 100
"""Sign-ins of one workspace that are remembered after their end."""


def authorization(attempt: AuthorizationAttempt) -> JsonObject:
    """Return what a person needs to sign in."""
    return {"url": attempt.url, "expiresAt": rfc3339(attempt.expires_at)}


class Pending:
    """What waits for a sign-in in one workspace, by server name."""

    def __init__(self, state: LiveState, places: Places) -> None:
        self._state = state
        self._places = places
        self._waiting: dict[str, tuple[Parked, asyncio.TimerHandle]] = {}
        self._overtaken: dict[str, asyncio.TimerHandle] = {}
        """Servers that were changed while they waited, until the callback would come too late."""
        self._over: dict[str, tuple[str, asyncio.TimerHandle]] = {}
        """Why a callback comes to nothing where the last sign-in is over, the oldest first; no attempt is held."""

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, name: str) -> bool:
        return name in self._waiting

    @property
    def is_remembering(self) -> bool:
        """Whether a callback would learn why nothing waits for it."""
        return bool(self._overtaken or self._over)

    def all(self) -> list[Parked]:
        """Return everything that waits, sorted by the server's name."""
        return [parked for _, (parked, _) in sorted(self._waiting.items())]

    def find(self, name: str) -> Parked:
        """Return what waits for a sign-in at this server.

        Raises:
            OAuthTargetConflict: it was changed meanwhile; said once.
            OAuthCallbackInvalid: what waited until lately was used up or has expired.
            OAuthNotPending: nothing waits or waited.
        """
        if (waiting := self._waiting.get(name)) is not None:
            return waiting[0]
        if (timer := self._overtaken.pop(name, None)) is not None:
            timer.cancel()
            raise OAuthTargetConflict(name)
        if (over := self._over.get(name)) is not None:
            raise OAuthCallbackInvalid(name, over[0], is_over=True)
        raise OAuthNotPending(name)

    def require_room(self, name: str) -> None:
        """Return where ``park`` would find a place.

        Raises:
            TooMany: as many are pending in the daemon as may be.
        """
        if name not in self._waiting and self._places.count >= self._places.limit:
            raise TooMany("pending authorizations", limit=self._places.limit, setting="PLURNK_MAX_PENDING")

    def park(self, parked: Parked) -> None:
        """Have it wait until it is settled or too late, in the place of whatever waited for this server.

        Raises:
            TooMany: as many are pending in the daemon as may be; what waited, waits.
        """
        name = parked.name
        self.require_room(name)
        with self._state.one_change():
            self._remove(name)
            self._places.count += 1
            loop = asyncio.get_running_loop()
            timer = loop.call_later(parked.attempt.seconds_left, self._expire, parked)
            self._waiting[name] = (parked, timer)
            shown: JsonObject = {"name": name, "action": parked.action}
            shown["expiresAt"] = rfc3339(parked.attempt.expires_at)
            self._state.put("pending", name, shown)

    def settle(self, parked: Parked) -> None:
        """Have it wait no longer, where it is still the one that waits; remember it where it is over."""
        if self._waits(parked):
            self._remove(parked.name)
            if parked.attempt.is_over:
                self._remember(parked.name, USED_UP if parked.attempt.seconds_left else TOO_LATE)

    def _expire(self, parked: Parked) -> None:
        """Have it wait no longer, since it is too late, and remember that."""
        if self._waits(parked):
            self._remove(parked.name)
            self._remember(parked.name, TOO_LATE)

    def _waits(self, parked: Parked) -> bool:
        """Return whether it is still the one that waits."""
        waiting = self._waiting.get(parked.name)
        return waiting is not None and waiting[0] is parked

    def overtake(self, name: str) -> None:
        """Have nothing wait for a server that was changed otherwise; its callback learns of that."""
        if name in self._waiting:
            attempt = self._waiting[name][0].attempt
            self._remove(name)
            loop = asyncio.get_running_loop()
            self._overtaken[name] = loop.call_later(attempt.seconds_left, self._overtaken.pop, name, None)

    def drop(self, name: str) -> bool:
        """Have nothing wait for this server; return whether something did."""
        is_known = name in self._waiting
        self._remove(name)
        return is_known

    def clear(self) -> None:
        """Have nothing wait any more."""
        with self._state.one_change():
            for name in [*self._waiting, *self._overtaken, *self._over]:
                self._remove(name)

    def _remember(self, name: str, reason: str) -> None:
        if len(self._over) >= OVER_MAX:
            self._remove(next(iter(self._over)))
        timer = asyncio.get_running_loop().call_later(OVER_KEPT.total_seconds(), self._over.pop, name, None)
        self._over[name] = (reason, timer)

    def _remove(self, name: str) -> None:
        """Forget everything of this name."""
        if (overtaken := self._overtaken.pop(name, None)) is not None:
            overtaken.cancel()
        if (over := self._over.pop(name, None)) is not None:
            over[1].cancel()
        if (waiting := self._waiting.pop(name, None)) is not None:
            waiting[1].cancel()
            self._places.count -= 1
            self._state.drop("pending", name)
