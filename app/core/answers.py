"""What can come back for one request to a peer, decided once at the wire. SPEC §connection, §calls.

An answer is a value; a request that got none raises one of the four faults. Nothing here is a Problem: which Problem
an answer becomes depends on what was asked, and is decided by ``operations`` and ``prepare``.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from app.core.json_value import Json, JsonObject
from app.core.problem import Problem
from app.core.value import value


@value
class Result:
    """A JSON-RPC result."""

    value: JsonObject
    size: int
    """Bytes of the message that carried it."""

    def is_larger_than(self, limit: int) -> bool:
        """Return whether it has more bytes than this, itself and without the escapes and blanks of its message."""
        return self.size > limit and len(orjson.dumps(self.value)) > limit


@dataclass(frozen=True, slots=True)
class RemoteError:
    """A JSON-RPC error, as the peer sent it."""

    code: int
    message: str
    data: Json = None
    http_status: int | None = None


@dataclass(frozen=True, slots=True)
class HttpRefusal:
    """A non-2xx HTTP answer without a JSON-RPC body."""

    status: int
    bearer_challenge: str | None = None
    """The value of ``WWW-Authenticate`` where it has a Bearer challenge."""
    problem: Problem | None = None
    """Why what it demands could not be had, where that is known: nobody need be asked to sign in then."""


Answer: TypeAlias = Result | RemoteError | HttpRefusal


class RequestFault(Exception):
    """A request got no answer; ``reason`` is our own sentence, without remote text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RequestNotSent(RequestFault):
    """The request never left: no connection, a refused address, a closed child."""


class AnswerLost(RequestFault):
    """The request may have been read, and no answer will come."""


class AnswerMalformed(RequestFault):
    """An answer came that is not a JSON-RPC answer to this request."""


class AnswerTooLarge(RequestFault):
    """An answer came that is over the message limit, in bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the answer is larger than {limit} bytes")
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Progress:
    """One accepted progress notification of a request. MCP 2026-07-28 basic/patterns/progress."""

    progress: float
    total: float | None = None
    message: str | None = None

    def following(self, earlier: "Progress | None") -> "Progress":
        """Return what is known after the earlier progress and this one: what is left out stays as it was."""
        if earlier is None:
            return self
        total = earlier.total if self.total is None else self.total
        return Progress(self.progress, total, earlier.message if self.message is None else self.message)

    def document(self) -> JsonObject:
        """Return its members that are known."""
        document: JsonObject = {"progress": plain_number(self.progress)}
        if self.total is not None:
            document["total"] = plain_number(self.total)
        if self.message is not None:
            document["message"] = self.message
        return document


INTEGERS_MAX: Final = 2.0**53
"""From here on a double stands for more than one integer, and beyond 64 bits no integer can be written."""


def plain_number(value: float) -> int | float:
    """Return 3 for 3.0, as the peer most likely wrote it."""
    is_plain = isinstance(value, float) and value.is_integer() and abs(value) <= INTEGERS_MAX
    return int(value) if is_plain else value
