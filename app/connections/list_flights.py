"""One set of list requests for all workspaces that ask the same server at once. SPEC §watch.

A list is kept as a whole, all its pages or none: no page is ever served beside one of another drain. Who comes while
another drains the same list waits for it; where that answer is not for everybody, each then asks for itself, at once.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import anyio

from app.connections.cache import ENTRIES_MAX, Cache, Places
from app.connections.prepare import Listed
from app.core.cache_control import NEVER

JOINS_MAX: Final = 3
"""How often one asker waits for others before it asks for itself."""
ENTRY_BYTES: Final = 200
"""What one entry of a list takes beside its text."""

Drain: TypeAlias = Callable[[], Awaitable[Listed]]


@dataclass(eq=False, slots=True)
class _Flight:
    """A drain that others wait for."""

    over: anyio.Event = field(default_factory=anyio.Event)
    shared: Listed | None = None
    """What it gave to everybody."""
    is_given_up: bool = False
    """It says nothing of the server: cancelled, or overtaken by a change. The next may be waited for."""


class ListFlights:
    """Every list that is being drained. One a daemon."""

    def __init__(self, cache: Cache[Listed], *, patience: float) -> None:
        """Take the seconds that one asker waits for others: a server that hangs for one may serve the next."""
        self._cache = cache
        self._patience = patience
        self._flights: dict[tuple[bytes, str], _Flight] = {}
        self._unshared: OrderedDict[tuple[bytes, str], None] = OrderedDict()

    async def listed(self, places: Places, drain: Drain, *, is_afresh: bool) -> Listed:
        """Return the list: kept, or drained by somebody else meanwhile, or by ``drain``.

        ``is_afresh`` allows the last alone. A failing drain is its asker's own failure.

        Raises:
            Problem: what ``drain`` raises.
        """
        give_up_at = anyio.current_time() + self._patience
        for _ in range(0 if is_afresh else JOINS_MAX):
            kept = self._cache.get(places)
            if kept is not None:
                return kept
            flight = self._flights.get(places.shared_key)
            if flight is None:
                if places.shared_key in self._unshared:
                    break
                return await self._lead(places, drain)
            with anyio.CancelScope(deadline=give_up_at):
                await flight.over.wait()
            if flight.shared is not None:
                return flight.shared
            if not flight.is_given_up:
                break
        return await self._drained(places, drain, _Flight())

    async def _lead(self, places: Places, drain: Drain) -> Listed:
        """Drain while others wait for it."""
        flight = self._flights[places.shared_key] = _Flight()
        try:
            return await self._drained(places, drain, flight)
        except anyio.get_cancelled_exc_class():
            flight.is_given_up = True
            raise
        finally:
            del self._flights[places.shared_key]
            flight.over.set()

    async def _drained(self, places: Places, drain: Drain, flight: _Flight) -> Listed:
        with self._cache.asking(places) as question:
            listed = await drain()
            control = listed.cache_control or NEVER
            if self._cache.keep(question, listed, size=_size(listed), control=control):
                flight.shared = listed
            flight.is_given_up = question.is_void
        if not question.is_void:
            self._note(places.shared_key, is_shared=flight.shared is not None)
        return listed

    def _note(self, key: tuple[bytes, str], *, is_shared: bool) -> None:
        """Remember of which lists nothing is shared: nobody has to wait for somebody else's."""
        self._unshared.pop(key, None)
        if not is_shared:
            self._unshared[key] = None
            if len(self._unshared) > ENTRIES_MAX:
                self._unshared.popitem(last=False)


def _size(listed: Listed) -> int:
    return sum(len(entry.raw) for entry in listed.entries) + ENTRY_BYTES * (1 + listed.count)
