"""From a definition to a READY connection. SPEC §connection.

Implements ``ports.Connector``: applies the operator's rules, expands the references, chooses the transport,
has the server prepared, and owns what connections share.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, assert_never

import anyio
from anyio.abc import TaskGroup
from yarl import URL

from app.connections.address_rule import AddressNotAllowedError
from app.connections.classify import Peer
from app.connections.connection_cache import Caches, ConnectionCache
from app.connections.http_pool import HttpPool
from app.connections.judging import Judge
from app.connections.measured_transport import MeasuredOpener
from app.connections.oauth.authorizations import Authorizations, capabilities_with
from app.connections.oauth.connection_authorization import ConnectionAuthorization
from app.connections.prepare import CatalogLimits
from app.connections.reaper import Reaper
from app.connections.recovery import Backoff
from app.connections.server_connection import ServerConnection
from app.connections.stdio import StdioOpener
from app.connections.stdio_policy import startable_command
from app.connections.streamable_http import StreamableHttpTransport, Trace
from app.connections.subscriptions import WatchTerms
from app.connections.terms import Terms
from app.connections.transport import OnLost, OpenTransport, Transport
from app.core.definitions import StdioDefinition
from app.core.json_value import JsonObject
from app.core.masking import Mask
from app.core.problem import Problem
from app.core.problems import AddressRefused, AuthorizationRefused, DefinitionInvalid, TooMany
from app.core.references import HttpExpanded, StdioExpanded, expand_definition, unrestricted
from app.core.telemetry import Telemetry
from app.ports import AuthorizationDemanded, Connection, Target
from app.settings import Settings

CAPABILITIES: Final[JsonObject] = {
    "elicitation": {"form": {}, "url": {}},
    "extensions": {"io.modelcontextprotocol/tasks": {}},
}
"""The client capabilities that every request declares."""


@dataclass(frozen=True, slots=True)
class _Opening:
    """What one connection is made of."""

    transport: OpenTransport
    cache: ConnectionCache
    authorization: ConnectionAuthorization | None = None


class Connector:
    """Makes connections. One a daemon."""

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        mask: Mask,
        *,
        reaper: Reaper | None = None,
        telemetry: Telemetry | None = None,
        backoff: Backoff | None = None,
        caches: Caches | None = None,
    ) -> None:
        """Take the environment that references are resolved from, and the mask that learns their values.

        Raises:
            ValueError: ``PLURNK_CA_FILE`` cannot be read; a sentence for the operator.
        """
        self._settings = settings
        self._environment = environment
        self._mask = mask
        self._pool = HttpPool(settings)
        self._authorizations = Authorizations(settings, mask, tls=self._pool.tls)
        self._reaper = reaper or Reaper()
        self._telemetry = telemetry or Telemetry()
        self._caches = caches or Caches(
            patience=settings.connect_timeout_ms / 2000, measures=self._telemetry.measures
        )
        self._trace: Trace = self._telemetry.tracer.carrier
        self._places = anyio.Semaphore(settings.max_preparations)
        self._terms = Terms(
            connect_timeout_ms=settings.connect_timeout_ms,
            limits=CatalogLimits(settings.max_catalog_entries, settings.max_catalog_bytes),
            slot=self._place,
            backoff=backoff or Backoff(),
            judge=Judge(
                max_schema_depth=settings.max_schema_depth, max_schema_nodes=settings.max_schema_nodes
            ),
            watch=_watch_terms(settings.max_listens, backoff),
            measures=self._telemetry.measures,
        )

    async def open(
        self, target: Target, group: TaskGroup, on_change: Callable[[Connection], None]
    ) -> Connection:
        """Return a READY connection; see ``ports.Connector.open``.

        Raises:
            Problem: it cannot be made; everything it had opened is closed.
            AuthorizationDemanded: a person has to sign in first.
        """
        outcome = "cancelled"
        try:
            async with self._place(is_explicit=target.is_explicit):
                connection = await self._prepared(target, group, on_change)
        except Problem as problem:
            outcome = problem.code
            raise
        except AuthorizationDemanded:
            outcome = "authorization-required"
            raise
        except Exception:
            outcome = "internal"
            raise
        else:
            outcome = "ok"
            return connection
        finally:
            self._telemetry.measures.preparations.add(target.definition.transport, outcome)

    async def _demanded(
        self, target: Target, authorization: ConnectionAuthorization, spent: float
    ) -> AuthorizationDemanded:
        """Return that a person has to sign in; the attempt is begun, in what is left of the time, where one asked.

        Raises:
            Problem: none can be begun.
        """
        server, demand = target.definition.name, authorization.demand
        if not target.is_explicit or demand is None:
            return AuthorizationDemanded(server, None)
        left_ms = max(0, self._settings.connect_timeout_ms - round(spent * 1000))
        return AuthorizationDemanded(
            server, await authorization.begin_first(demand.bearer_challenge, timeout_ms=left_ms)
        )

    async def close(self) -> None:
        """Close the HTTP pool and the reaper."""
        try:
            await self._pool.close()
        finally:
            await self._reaper.close()

    async def _prepared(
        self, target: Target, group: TaskGroup, on_change: Callable[[Connection], None]
    ) -> ServerConnection:
        """Return a READY connection.

        Raises:
            Problem: as ``open``.
            AuthorizationDemanded: likewise.
        """
        definition = target.definition
        peer = Peer(definition.name, definition.transport)
        opening = await self._opening(target, group)
        began = anyio.current_time()
        connection = ServerConnection(
            peer,
            MeasuredOpener(opening.transport, peer, self._telemetry),
            self._terms,
            group=group,
            on_change=on_change,
            enabled=definition.tools,
            cache=opening.cache,
            authorization=opening.authorization,
        )
        try:
            await connection.prepare()
        except AuthorizationRefused:
            if opening.authorization is None or opening.authorization.demand is None:
                raise
            spent = anyio.current_time() - began
            raise await self._demanded(target, opening.authorization, spent) from None
        return connection

    @asynccontextmanager
    async def _place(self, *, is_explicit: bool = False) -> AsyncGenerator[None]:
        """Hold one of the places among the preparations that run at once. SPEC §limits.

        Raises:
            TooMany: none is free, and somebody waits for the answer; others queue.
        """
        if is_explicit:
            try:
                self._places.acquire_nowait()
            except anyio.WouldBlock:
                limit = self._settings.max_preparations
                raise TooMany(
                    "preparations at once", limit=limit, setting="PLURNK_MAX_PREPARATIONS"
                ) from None
        else:
            await self._places.acquire()
        try:
            yield
        finally:
            self._places.release()

    async def _opening(self, target: Target, group: TaskGroup) -> _Opening:
        """Return what the definition's connection is made of, with every reference expanded.

        Raises:
            Problem: reference-*, *-refused, definition-invalid.
        """
        may_reference = unrestricted if target.source == "service" else self._settings.may_reference
        expanded = expand_definition(target.definition, self._environment, may_reference)
        self._mask.add(expanded.secrets)
        match expanded:
            case StdioExpanded():
                return _Opening(self._stdio_opener(target, expanded), self._caches.of_child())
            case HttpExpanded():
                return await self._http_opening(target, expanded, group)
            case _:
                assert_never(expanded)

    def _stdio_opener(self, target: Target, expanded: StdioExpanded) -> OpenTransport:
        definition = target.definition
        assert isinstance(definition, StdioDefinition)  # noqa: S101 it expands to what it is
        command = startable_command(
            definition, target.source, self._settings, environment=self._environment, cwd=expanded.cwd
        )
        return StdioOpener(
            server=definition.name,
            expanded=replace(expanded, command=command),
            environment=self._environment,
            reaper=self._reaper,
            mask=self._mask.mask,
            capabilities=CAPABILITIES,
            max_message=self._settings.max_message,
            trace=self._trace,
        )

    async def _http_opening(self, target: Target, expanded: HttpExpanded, group: TaskGroup) -> _Opening:
        server = target.definition.name
        try:
            url = URL(expanded.url)
        except ValueError:
            raise DefinitionInvalid(
                [("/url", "is not an absolute http or https URL")], server=server
            ) from None
        try:
            await self._pool.require_allowed(url)
        except AddressNotAllowedError:
            raise AddressRefused(server=server) from None
        headers = dict(expanded.headers)
        if expanded.bearer is not None:
            headers["Authorization"] = f"Bearer {expanded.bearer}"
        authorization = self._authorizations.of(target, url, expanded.client_secret, group)

        async def open_http(on_lost: OnLost) -> Transport:  # noqa: ARG001 a POST has nothing to lose
            return StreamableHttpTransport(
                self._pool,
                url,
                headers,
                message_max=self._settings.max_message,
                capabilities=capabilities_with(CAPABILITIES, authorization),
                trace=self._trace,
                authorize=authorization.request if authorization is not None else None,
            )

        cache = self._caches.of_http(
            str(url),
            headers,
            workspace=target.workspace,
            server=server,
            is_explicit=target.is_explicit,
            grant=authorization.grant if authorization is not None else None,
        )
        return _Opening(open_http, cache, authorization)


def _watch_terms(listens_max: int, backoff: Backoff | None) -> WatchTerms:
    """Return the terms that every connection shares, the daemon's places for listen streams among them."""
    places = anyio.Semaphore(listens_max, max_value=listens_max)
    return WatchTerms(places) if backoff is None else WatchTerms(places, backoff)
