"""The requests of one child that wait for their answers, and whose answer a message is. SPEC §connection.

Not here: reading and writing (``stdio``), what bytes mean (``wire``). Nothing here waits.

- Ids are compared with their type; an answer to none of ours changes nothing.
- An error without an id settles the request in flight where there is exactly one, and nothing else can be
  meant; a stream that was acknowledged is not, and once a request was cancelled the error may be about that.
- An answer that is ours but for the form of its id or of its envelope ends its request as malformed, unless a
  better answer comes soon: a child that writes ids as texts writes no other.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from app.connections.listen_gate import ListenGate
from app.connections.pipe_writer import Written
from app.connections.progress import ProgressGate
from app.connections.wire import Response, meant_id
from app.core.answers import Answer, AnswerMalformed, RemoteError, RequestFault
from app.core.json_value import Json

BETTER_SECONDS: Final = 1.0
"""How long an answer in doubt waits for a better one."""

Settled: TypeAlias = Answer | RequestFault


@dataclass(slots=True)
class Flight:
    """One request that waits for its answer."""

    settled: asyncio.Future[Settled]
    gate: ProgressGate | ListenGate | None
    written: Written | None = None
    is_doubted: bool = False
    """Whether something that seems to be its answer came, and ends it soon."""

    @property
    def stands(self) -> bool:
        """Whether it is a stream that was acknowledged."""
        return isinstance(self.gate, ListenGate) and self.gate.is_acknowledged


class Flights:
    """The requests in flight, by id."""

    def __init__(self) -> None:
        self.has_cancelled = False
        """Whether the child was told that a caller left, so that an error without an id may be about that."""
        self._by_id: dict[int, Flight] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[tuple[int, Flight]]:
        """Give each with its id; settling them meanwhile is no harm."""
        return iter(list(self._by_id.items()))

    def open(self, identifier: int, gate: ProgressGate | ListenGate | None) -> Flight:
        """Return a request that is in flight from now on."""
        flight = self._by_id[identifier] = Flight(asyncio.get_running_loop().create_future(), gate)
        return flight

    def leave(self, identifier: int) -> bool:
        """Forget a request whose caller left; return whether it was in flight."""
        return self._by_id.pop(identifier, None) is not None

    def found(self, identifier: Json) -> Flight | None:
        """Return the request with this id, which is its progress token too; compared with its type."""
        return self._by_id.get(identifier) if type(identifier) is int else None

    def settle(self, identifier: Json, settled: Settled) -> bool:
        """Return whether a request with this id waited and now has its end."""
        if type(identifier) is not int or (flight := self._by_id.pop(identifier, None)) is None:
            return False
        if not flight.settled.done():
            flight.settled.set_result(settled)
        return True

    def take(self, response: Response) -> bool:
        """Return whether the response is the answer of a request, which now has it."""
        named, answer = response.id, response.answer
        meant = self._only() if named is None else meant_id(named)
        is_exact = isinstance(answer, RemoteError) if named is None else type(named) is int
        if is_exact and self.settle(meant, answer):
            return True
        self.doubt(meant, AnswerMalformed("the id of the answer is not the request's"))
        return False

    def doubt(self, identifier: int | None, fault: AnswerMalformed) -> None:
        """End the request that something seems to answer, where no better answer comes soon."""
        flight = self.found(identifier)
        if flight is not None and not flight.is_doubted:
            flight.is_doubted = True
            asyncio.get_running_loop().call_later(BETTER_SECONDS, self.settle, identifier, fault)

    def _only(self) -> int | None:
        """Return the one request that an answer without an id can mean."""
        meant = [identifier for identifier, flight in self._by_id.items() if not flight.stands]
        return meant[0] if len(meant) == 1 and not self.has_cancelled else None
