"""Sign-ins at the AuthorizationAttempt port, whose exchange ends when the test says so. No protocol is in them."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio

from app.core.answers import Answer, Result
from app.core.interrupts import ResumeEntry
from app.core.oauth_problems import OAuthCallbackInvalid
from app.core.problem import Problem
from tests.support.board_house import CATALOG
from tests.support.gated_connection import GatedRequest
from tests.support.operations_house import OperationsHouse, operations_house

REDIRECT = "http://127.0.0.1:7777/cb"
FOREIGN = f"{REDIRECT}?code=c&state=foreign"
"""A callback that is nobody's."""


def oauth(name: str = "p", **members: Any) -> dict[str, Any]:
    """Return the definition of a server at which a person signs in."""
    authorization = {"type": "oauth", "redirectUrl": REDIRECT}
    server = {"name": name, "transport": "http", "url": f"http://{name}.example/mcp"}
    return {**server, "authorization": authorization, **members}


class Granted:
    """What a server granted."""

    def __init__(self, *, has_token: bool = False) -> None:
        self.has_token = has_token


class GatedAttempt:
    """One sign-in; ``callback`` is the URL that completes it."""

    def __init__(self, name: str = "s", *, gives_token: bool = True, expires_in_s: float = 600) -> None:
        self.url = f"https://as.example/authorize?state={name}"
        self.callback = f"{REDIRECT}?code=c&state={name}"
        self.expires_at = datetime.now(UTC) + timedelta(seconds=expires_in_s)
        self._ends_at = time.monotonic() + expires_in_s
        self._is_used = False
        self.authorization = Granted()
        self.failure: Problem | None = None
        self.gate: anyio.Event | None = None
        """Where it is set, the exchange waits for it."""
        self.exchanging = anyio.Event()
        self._gives_token = gives_token

    @property
    def is_over(self) -> bool:
        """Whether its callback was used or comes too late."""
        return self._is_used or self.seconds_left == 0

    @property
    def seconds_left(self) -> float:
        """How long the callback has still time."""
        return max(0.0, self._ends_at - time.monotonic())

    async def complete(self, callback_url: str) -> None:
        """Exchange the code of the right callback, once."""
        if self.is_over or callback_url != self.callback:
            raise OAuthCallbackInvalid("p", "its state is another", is_over=self.is_over)
        self._is_used = True
        self.exchanging.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.authorization.has_token = self._gives_token


def hands(interrupt: str, callback_url: str) -> ResumeEntry:
    """Return the answer that hands a callback over."""
    return ResumeEntry(interrupt, "resolved", {"callbackUrl": callback_url})


def peer_answers(house: OperationsHouse, *answers: Answer | dict[str, Any]) -> None:
    """Have the peer answer its requests so, one after the other; a dict is a result."""
    remaining = iter(answers)

    def next_answer(_: GatedRequest) -> Answer:
        answer = next(remaining)
        return Result(answer, 9) if isinstance(answer, dict) else answer

    house.peer.automatic = next_answer


@asynccontextmanager
async def sign_in_house(*attempts: GatedAttempt, **settings: str) -> AsyncGenerator[OperationsHouse]:
    """Run a house whose server ``p`` is connected and begins these sign-ins; its tool ``get`` needs no consent."""
    definitions = {"p": oauth(read=["get"])}
    async with operations_house({"p": CATALOG}, definitions=definitions, environment=settings) as house:
        house.peer.attempts.extend(attempts)
        yield house
