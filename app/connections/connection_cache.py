"""What one connection keeps of its server's answers, and what it may have of others'. SPEC §watch.

Keys are digests under a key of this process: of the URL and the expanded static headers for what is public, of the
workspace, the server's name and what was granted as well for what is private. No expanded value and no token is in
them.

Nothing of a child is kept but what its own connection read, and no longer than the child lives.
"""

import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from itertools import count
from typing import Final, TypeAlias

import orjson

from app.connections import classify
from app.connections.cache import BYTES_MAX, ENTRIES_MAX, Cache, Clock, Places
from app.connections.list_flights import Drain, ListFlights
from app.connections.prepare import LISTS, Listed
from app.core.answers import Answer, Result
from app.core.cache_control import cache_control
from app.core.compact_bytes import compact
from app.core.json_value import JsonObject
from app.core.measures import Measures

PATIENCE_S: Final = 15.0
"""How long a preparation waits for a list that another one drains."""
RESOURCES_MAX: Final = 256
"""URIs that one connection remembers to have read."""

Ask: TypeAlias = Callable[[], Awaitable[Answer]]
Grant: TypeAlias = Callable[[], str]
"""Names who is authorized now; another name after every sign-in, the same one after a refresh. SPEC §oauth."""


class Caches:
    """What is kept of all servers' answers. One a daemon; lists and reads never crowd each other out."""

    def __init__(
        self,
        *,
        clock: Clock = time.monotonic,
        entries_max: int = ENTRIES_MAX,
        bytes_max: int = BYTES_MAX,
        patience: float = PATIENCE_S,
        measures: Measures | None = None,
    ) -> None:
        self.lookups = (measures or Measures()).cache_lookups
        """Looks into what is kept: ``lists`` or ``reads``, ``hit`` or ``miss``."""
        self.lists = Cache[Listed](clock=clock, entries_max=entries_max, bytes_max=bytes_max)
        self.flights = ListFlights(self.lists, patience=patience)
        self.reads = Cache[bytes](clock=clock, entries_max=entries_max, bytes_max=bytes_max)
        self._secret = secrets.token_bytes(32)
        self._children = count()

    def of_http(
        self,
        url: str,
        headers: Mapping[str, str],
        *,
        workspace: str,
        server: str,
        is_explicit: bool,
        grant: Grant | None = None,
    ) -> "ConnectionCache":
        """Return what a connection over HTTP keeps.

        ``headers`` are expanded and complete, a bearer token included; what OAuth adds is ``grant``'s.
        """
        named = [[name.lower(), headers[name]] for name in sorted(headers, key=str.lower)]
        shared = self._digest(["http", url, named])

        def own(granted: str) -> bytes:
            return self._digest([shared.hex(), workspace, server, granted])

        if grant is None:
            always = own("")
            return ConnectionCache(
                self, own=lambda: always, shared=shared, is_explicit=is_explicit, is_child=False
            )
        return ConnectionCache(
            self, own=lambda: own(grant()), shared=shared, is_explicit=is_explicit, is_child=False
        )

    def of_child(self) -> "ConnectionCache":
        """Return what a connection to a child keeps, which nobody shares."""
        digest = self._digest(["child", next(self._children)])
        return ConnectionCache(self, own=lambda: digest, shared=digest, is_explicit=False, is_child=True)

    def _digest(self, parts: list[object]) -> bytes:
        return blake2b(json.dumps(parts).encode("ascii"), digest_size=32, key=self._secret).digest()


class ConnectionCache:
    """One connection's part of the caches. Implements ``prepare.Lists``."""

    def __init__(
        self, caches: Caches, *, own: Callable[[], bytes], shared: bytes, is_explicit: bool, is_child: bool
    ) -> None:
        """Take the digest of the asker, which changes with what was granted, and that of all who share."""
        self._caches = caches
        self._own = own
        self._shared = shared
        self._is_afresh = is_explicit
        self._is_child = is_child
        self._read: OrderedDict[str, None] = OrderedDict()
        self.on_resources: Callable[[], None] = lambda: None
        """Is called, without awaiting, where ``resources`` has grown."""

    def begin(self) -> None:
        """Note that a transport is about to be opened: a new child, or a person who wants everything afresh."""
        if self._is_child or self._is_afresh:
            self._caches.reads.forget(self._own(), self._shared)

    def settle(self) -> None:
        """Note that the connection is READY: what follows may be served from what is kept."""
        self._is_afresh = False

    def close(self) -> None:
        """Forget what nobody can ask for again."""
        if self._is_child:
            self._caches.reads.forget(self._own())

    async def listed(self, method: str, drain: Drain) -> Listed:
        """Return the list that the method gives; see ``ListFlights.listed``.

        Raises:
            Problem: what ``drain`` raises.
        """
        if self._is_child:
            return await drain()
        is_asked = False

        async def ask() -> Listed:
            nonlocal is_asked
            is_asked = True
            return await drain()

        places = self._places(method)
        try:
            return await self._caches.flights.listed(places, ask, is_afresh=self._is_afresh)
        finally:
            self._caches.lookups.add("lists", "miss" if is_asked else "hit")

    async def read(self, params: JsonObject, ask: Ask) -> Answer:
        """Return the answer to ``resources/read``, kept or asked for.

        Only a bare ``uri`` is served and kept: whatever else a request carries may have made its answer.

        Raises:
            RequestFault: what ``ask`` raises.
        """
        uri = params.get("uri")
        if len(params) != 1 or not isinstance(uri, str):
            return await ask()
        places, reads = self._places(uri), self._caches.reads
        kept = reads.get(places)
        self._caches.lookups.add("reads", "miss" if kept is None else "hit")
        if kept is not None:
            self._remember(uri)
            return Result(orjson.loads(kept), len(kept))
        with reads.asking(places) as question:
            answer = await ask()
            if isinstance(answer, Result) and classify.is_complete(answer.value):
                control = cache_control(answer.value)
                written = compact(orjson.dumps(answer.value)) if control[0] else b""
                reads.keep(question, written, size=len(written) + len(uri), control=control)
                if reads.get(places) is not None:
                    self._remember(uri)
        return answer

    def resources(self) -> frozenset[str]:
        """Return the URIs that were read and may be served again without asking: those worth watching."""
        for uri in [uri for uri in self._read if self._caches.reads.get(self._places(uri)) is None]:
            del self._read[uri]
        return frozenset(self._read)

    def invalidate(self, capability: str) -> None:
        """Keep none of the lists of ``tools``, ``resources`` or ``prompts``, nor what is under way; never awaits."""
        for method in LISTS.get(capability, ()):
            self._caches.lists.invalidate(self._places(method))

    def invalidate_resource(self, uri: str) -> None:
        """Keep nothing that was read of this URI, nor what is under way; never awaits.

        A server may name a part of what was read: what this connection read under a beginning of the URI goes too.
        """
        for changed in {uri, *(read for read in self._read if uri.startswith(read))}:
            self._caches.reads.invalidate(self._places(changed))

    def _places(self, name: str) -> Places:
        return Places(self._own(), self._shared, name)

    def _remember(self, uri: str) -> None:
        is_news = uri not in self._read
        self._read[uri] = None
        self._read.move_to_end(uri)
        if len(self._read) > RESOURCES_MAX:
            self._read.popitem(last=False)
        if is_news:
            self.on_resources()
