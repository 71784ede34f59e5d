"""Preparing a server: ``server/discover``, then every negotiated list to its end. SPEC §prepare.

Works on an open transport and knows nothing of deadlines: its caller cancels it. Which tools may be called is
``core.policy``'s decision, what a page holds ``core.listing``'s. MCP 2026-07-28 server/discover,
server/utilities/pagination, server/utilities/caching.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Final, Protocol

import anyio
from anyio import to_thread

from app.connections import classify
from app.connections.classify import Peer
from app.connections.judging import Judge
from app.connections.spoken import Spoken
from app.connections.transport import Transport
from app.connections.wire import REVISION
from app.core.answers import HttpRefusal, RemoteError, RequestFault, Result
from app.core.cache_control import CacheControl, cache_control, narrowest
from app.core.catalog import Entry, Judgement, ServerCatalog, Withheld
from app.core.json_value import Json, JsonObject
from app.core.listing import Page, PageError, read_page
from app.core.problem import Problem
from app.core.problems import CatalogInvalid

PAGES_MAX: Final = 1000
DISCOVER: Final = "server/discover"
TEMPLATES: Final = "resources/templates/list"
LISTS: Final = MappingProxyType(
    {
        "tools": ("tools/list",),
        "resources": ("resources/list", TEMPLATES),
        "prompts": ("prompts/list",),
    }
)
"""The list methods that each server capability negotiates."""

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
IDENTITY_MAX: Final = 1024
"""Characters that each text of a server's identity may have."""
LARGE_PAGE: Final = 512 * 1024
"""Bytes of a page from which it is read in a thread."""


@dataclass(frozen=True, slots=True)
class CatalogLimits:
    """How much a server may list. SPEC §limits."""

    entries: int
    size: int
    """Bytes of all list answers together."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One list, drained to its end."""

    entries: tuple[Entry, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    cache_control: CacheControl | None = None
    """The shortest life and the narrowest scope of its pages; None where there was no page."""
    size: int = 0
    """Bytes of the answers that carried it."""

    @property
    def count(self) -> int:
        """How many entries the server listed."""
        return len(self.entries) + len(self.withheld)


class Lists(Protocol):
    """Who may know a list without asking the server."""

    async def listed(self, method: str, drain: Callable[[], Awaitable[Listed]]) -> Listed:
        """Return the list, drained here or not.

        Raises:
            Problem: what ``drain`` raises.
        """
        ...


class Preparation:
    """One preparation over one transport. Use it once."""

    def __init__(
        self,
        transport: Transport,
        peer: Peer,
        limits: CatalogLimits,
        *,
        judge: Judge | None = None,
        enabled: Collection[str] | None = None,
        lists: Lists | None = None,
    ) -> None:
        """Take who judges the enabled tools, without whom they are left to ``policy``, and who may know the lists."""
        self._lists = lists
        self._judge = judge
        self._enabled = enabled
        self._transport = transport
        self._peer = peer
        self._limits = limits
        self._entries = 0
        self._size = 0
        self.awaits = DISCOVER
        """What the server owes, for the Problem of its silence."""

    async def run(self) -> ServerCatalog:
        """Return the complete catalog of a server that speaks our revision.

        Raises:
            Problem: server-unavailable, address-refused, authorization-refused, capability-required,
                protocol-revision-unsupported, catalog-invalid.
        """
        return await self.list_all(await self.discover())

    async def discover(self) -> ServerCatalog:
        """Return what the server is, its lists still empty.

        Raises:
            Problem: as ``run``.
        """
        found = await self._discover()
        capabilities = found["capabilities"]
        assert isinstance(capabilities, dict)  # noqa: S101 classify.discovered judged it
        self.awaits = "its lists"
        instructions = found.get("instructions")
        return ServerCatalog(
            protocol_version=REVISION,
            server_info=_identity(found),
            capabilities=capabilities,
            instructions=instructions if isinstance(instructions, str) else None,
        )

    async def list_all(
        self, catalog: ServerCatalog, capabilities: frozenset[str] = frozenset(LISTS)
    ) -> ServerCatalog:
        """Return the catalog with the lists of these capabilities as they are now, where the server has them.

        Raises:
            Problem: as ``run``.
        """
        methods = [method for name in LISTS if catalog.offers(name) for method in LISTS[name]]
        stale = [
            method for name in LISTS if name in capabilities for method in LISTS[name] if method in methods
        ]
        kept = {method: _kept(catalog, method) for method in methods if method not in stale}
        self._entries = sum(len(each.entries) + len(each.withheld) for each in kept.values())
        self._size = sum(len(entry.raw) for each in kept.values() for entry in each.entries)
        self.awaits = "its lists"
        listed = kept | await self._drain_all(stale)
        tools = listed.get("tools/list", Listed()).entries
        judged = await self._judged(tools) if "tools/list" in stale else catalog.judged
        return replace(
            catalog,
            tools=tools,
            resources=listed.get("resources/list", Listed()).entries,
            resource_templates=listed.get(TEMPLATES, Listed()).entries,
            prompts=listed.get("prompts/list", Listed()).entries,
            withheld=tuple(entry for method in methods for entry in listed[method].withheld),
            cache_control={
                method: control for method in methods if (control := listed[method].cache_control) is not None
            },
            judged=judged,
        )

    async def drain(self, method: str) -> Listed:
        """Return one list to its end, asked for here. The cursor is opaque: only null or none ends the list.

        Raises:
            Problem: as ``run``.
        """
        entries: list[Entry] = []
        withheld: list[Withheld] = []
        lives: list[CacheControl] = []
        size = 0
        seen: set[str] = set()
        params: JsonObject = {}
        for _ in range(PAGES_MAX):
            result = await self._page(method, params)
            if result is None:
                return Listed()
            page = await self._read(method, result, len(entries) + len(withheld))
            entries += page.entries
            withheld += page.withheld
            lives.append(cache_control(result.value))
            size += result.size
            cursor = page.next_cursor
            if cursor is None:
                return Listed(tuple(entries), tuple(withheld), narrowest(lives), size)
            if cursor in seen:
                raise self._invalid(
                    "cursor-repeated", f"{method} gives the same cursor again and would never end"
                )
            seen.add(cursor)
            params = {"cursor": cursor}
        raise self._invalid("pages-too-many", f"{method} has a next cursor after {PAGES_MAX} pages")

    async def _discover(self) -> JsonObject:
        """Return the DiscoverResult; a server that names our revision in ``-32022`` is asked a second time.

        Raises:
            Problem: by SPEC §revision.
        """
        for _ in range(2):
            try:
                answer = await self._transport.request(DISCOVER, {})
            except RequestFault as fault:
                lost = self._transport.account(fault.reason)
                raise classify.discover_fault(fault, lost, self._peer) from None
            verdict = classify.discovered(answer, self._peer)
            if isinstance(verdict, dict):
                return verdict
        raise self._peer.unsupported(Spoken(f"JSON-RPC error {classify.REVISION_UNSUPPORTED}, twice"))

    async def _drain_all(self, methods: list[str]) -> dict[str, Listed]:
        """Return every list by its method, drained at once; the first failure ends the others.

        Raises:
            Problem: the first.
        """
        if len(methods) == 1:
            return {methods[0]: await self._listed(methods[0])}
        listed: dict[str, Listed] = {}
        problems: list[Problem] = []

        async def drain(method: str, scope: anyio.CancelScope) -> None:
            try:
                listed[method] = await self._listed(method)
            except Problem as problem:
                problems.append(problem)
                scope.cancel()

        async with anyio.create_task_group() as group:
            for method in methods:
                group.start_soon(drain, method, group.cancel_scope)
        if problems:
            raise problems[0]
        return listed

    async def _listed(self, method: str) -> Listed:
        """Return one list, counted against the limits wherever it came from.

        Raises:
            Problem: as ``run``.
        """
        if self._lists is None:
            return await self.drain(method)
        drained: list[Listed] = []

        async def drain() -> Listed:
            drained.append(await self.drain(method))
            return drained[0]

        listed = await self._lists.listed(method, drain)
        if not drained:
            self._count(listed.count, listed.size)
        return listed

    async def _judged(self, tools: Collection[Entry]) -> Mapping[str, Judgement]:
        """Return what is judged ahead of these tools."""
        if self._judge is None:
            return {}
        self.awaits = "a judgement of its tools"
        return await self._judge.judged(tools, self._enabled, is_http=self._peer.transport == "http")

    async def _page(self, method: str, params: JsonObject) -> Result | None:
        """Return one page, or None where the server has no templates and no method for them either.

        Raises:
            Problem: the answer is no page.
        """
        try:
            answer = await self._transport.request(method, params)
        except RequestFault as fault:
            lost = self._transport.account(fault.reason)
            raise classify.list_fault(method, fault, lost, self._peer) from None
        match answer:
            case RemoteError(code=classify.METHOD_NOT_FOUND) if method == TEMPLATES and not params:
                return None
            case RemoteError() | HttpRefusal():
                raise classify.list_refused(method, answer, self._peer)
            case Result(value=value) if not classify.is_complete(value):
                raise self._invalid(
                    "result-type", f"{method} was answered with a result that is not complete"
                )
            case Result():
                return answer

    async def _read(self, method: str, result: Result, first_index: int) -> Page:
        """Return what the page holds, counted against the limits.

        Raises:
            CatalogInvalid: it has no list, a cursor that is none, or is over a limit.
        """
        read = partial(read_page, method, result.value, first_index=first_index)
        try:
            # A page of megabytes would hold up the loop for a tenth of a second.
            page = await to_thread.run_sync(read) if result.size > LARGE_PAGE else read()
        except PageError as error:
            raise self._invalid(error.code, f"{method}: {error.detail}") from None
        self._count(page.count, result.size)
        return page

    def _count(self, entries: int, size: int) -> None:
        """Take note of what was listed.

        Raises:
            CatalogInvalid: it is over a limit.
        """
        self._entries += entries
        self._size += size
        if self._entries > self._limits.entries:
            limit = f"{self._limits.entries} entries (PLURNK_MAX_CATALOG_ENTRIES)"
            raise self._invalid("entries-too-many", f"its lists have more than {limit}")
        if self._size > self._limits.size:
            limit = f"{self._limits.size} bytes (PLURNK_MAX_CATALOG_BYTES)"
            raise self._invalid("catalog-too-large", f"its lists have more than {limit}")

    def _invalid(self, reason: str, detail: str) -> CatalogInvalid:
        return CatalogInvalid(self._peer.server, reason, detail)


def _kept(catalog: ServerCatalog, method: str) -> Listed:
    """Return one list of the catalog as it was drained."""
    entries = {
        "tools/list": catalog.tools,
        "resources/list": catalog.resources,
        TEMPLATES: catalog.resource_templates,
        "prompts/list": catalog.prompts,
    }
    withheld = tuple(each for each in catalog.withheld if each.method == method)
    return Listed(entries[method], withheld, catalog.cache_control.get(method))


def _identity(found: JsonObject) -> dict[str, Json] | None:
    """Return ``{name, version, title?}`` as the server reports itself, or None where it does not."""
    meta = found.get("_meta")
    info = meta.get(SERVER_INFO) if isinstance(meta, dict) else None
    if not isinstance(info, dict):
        return None
    identity: dict[str, Json] = {}
    for member in ("name", "version", "title"):
        text = info.get(member)
        if isinstance(text, str) and len(text) <= IDENTITY_MAX:
            identity[member] = text
        elif member != "title" or text is not None:
            return None
    return identity
