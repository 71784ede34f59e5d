"""One prepared connection to one server: its state, its catalog, its requests, its end. SPEC §connection, §watch.

Owns a transport and, where the server tells of changes, the watch over it; nothing else while it is healthy. A
transport that is lost (only a child can be) is opened again, discovered again and listed again by one task, which
lives until the server is back or the connection is retired. A failing request changes no state: the next one stands
alone. Changed lists are listed again over the same transport; a refresh that fails changes no state either.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from functools import partial

import anyio
import structlog
from anyio.abc import TaskGroup

from app.concurrency import Latch
from app.connections.classify import Peer
from app.connections.connection_cache import Caches, ConnectionCache
from app.connections.header_mismatch import changed_schema, is_header_mismatch
from app.connections.oauth.connection_authorization import ConnectionAuthorization
from app.connections.prepare import DISCOVER, LISTS, Preparation
from app.connections.recovery import Attempts
from app.connections.refreshes import Refreshes
from app.connections.subscription_filter import Filter
from app.connections.subscriptions import Observer, OnTask, Watch
from app.connections.terms import Terms
from app.connections.transport import Lost, OnProgress, OpenTransport, Transport
from app.core.answers import Answer, HttpRefusal, RequestNotSent, Result
from app.core.catalog import ServerCatalog
from app.core.connection_state import ConnectionEvent, ConnectionState, advance
from app.core.json_value import JsonObject
from app.core.oauth_problems import sign_in_required
from app.core.problem import Problem
from app.core.problems import AuthorizationRefused, Internal
from app.ports import Authorization, AuthorizationAttempt

log = structlog.get_logger(__name__)

READ = "resources/read"


class ServerConnection:
    """Implements ``ports.Connection``."""

    def __init__(
        self,
        peer: Peer,
        open_transport: OpenTransport,
        terms: Terms,
        *,
        group: TaskGroup,
        on_change: Callable[["ServerConnection"], None],
        enabled: Collection[str] | None = None,
        cache: ConnectionCache | None = None,
        authorization: ConnectionAuthorization | None = None,
    ) -> None:
        """Note what ``prepare`` will need; nothing is opened yet."""
        self._peer = peer
        self._open_transport = open_transport
        self._terms = terms
        self._group = group
        self._on_change = on_change
        self._enabled = enabled
        self.cache = cache or Caches().of_child()
        """What is kept of its answers; who hears of a change says so there."""
        self._authorization = authorization
        if authorization is not None:
            authorization.on_demand, authorization.on_granted = self._demand, self._take_grant
        self._state = ConnectionState.PREPARING
        terms.measures.connection_moved(None, self._state)
        self._problem: Problem | None = None
        self._transport: Transport | None = None
        self._catalog: ServerCatalog | None = None
        self._loss: Lost | None = None
        self._attempts = Attempts(terms.backoff)
        self._ready_at = 0.0
        self._recovery: anyio.CancelScope | None = None
        self._recovery_over = Latch()
        self._closing = asyncio.Lock()  # One of anyio takes 700 bytes more.
        self._close_failure: str | None = None
        self._refreshes = Refreshes(self._refresh, terms.pace, server=peer.server)
        self.watch = Watch(
            terms.watch,
            Observer(
                on_list_changed=lambda capability: self._outdated(Filter(frozenset({capability}))),
                on_missed=self._outdated,
                on_live=self._tell_live,
            ),
            server=peer.server,
        )
        """What is watched for others: cached resources and running tasks."""
        self.watch.on_resource_updated = self.cache.invalidate_resource
        self.cache.on_resources = self._watch_resources

    @property
    def server(self) -> str:
        """The server's name in its workspace."""
        return self._peer.server

    @property
    def state(self) -> ConnectionState:
        """Where it stands."""
        return self._state

    @property
    def problem(self) -> Problem | None:
        """Why it is not READY, or why its lists could not be refreshed; else None."""
        return self._problem

    @property
    def is_live(self) -> bool:
        """Whether changes are watched; not while it is lost."""
        return self._state is ConnectionState.READY and self.watch.is_live

    @property
    def catalog(self) -> ServerCatalog:
        """What the server listed when it was last prepared or refreshed."""
        if self._catalog is None:
            raise RuntimeError("a connection has no catalog before it is prepared")
        return self._catalog

    @property
    def authorization(self) -> Authorization | None:
        """What it shows its server besides the definition's own headers; None where that never changes."""
        return self._authorization.authorization if self._authorization is not None else None

    async def begin_authorization(self, challenge: str | None) -> AuthorizationAttempt:
        """Begin a sign-in; see ``ports.Connection.begin_authorization``.

        Raises:
            AuthorizationRefused: the definition has no way to authorize, or nobody can give what is demanded.
            OAuthMetadataInvalid: the server or its authorization server describes itself in no way that can be used.
            ServerUnavailable: one of them gives no answer in time.
        """
        if self._authorization is None:
            raise AuthorizationRefused(self.server, "its definition has no way to authorize")
        return await self._authorization.begin(challenge, timeout_ms=self._terms.connect_timeout_ms)

    async def prepare(self) -> None:
        """Be READY on return. A failed or cancelled call has closed what it opened.

        Raises:
            Problem: as ``ports.Connector.open``.
        """
        try:
            await self._open_and_list()
            self._be_ready()
        except BaseException as error:
            self._problem = error.again() if isinstance(error, Problem) else None
            with anyio.CancelScope(shield=True):
                await self._close_transport()
            self._advance(ConnectionEvent.LOST)
            raise

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        input_schema: bytes | None = None,
        on_progress: OnProgress | None = None,
    ) -> Answer:
        """Return the peer's answer to one request; see ``ports.Connection.request``.

        Raises:
            RequestFault: no answer, by kind.
        """
        transport = self._transport
        if transport is None or self._state is not ConnectionState.READY:
            raise RequestNotSent(f"the connection is {self._state}")
        if method == READ:
            return await self.cache.read(
                params, partial(transport.request, method, params, on_progress=on_progress)
            )
        answer = await transport.request(method, params, input_schema=input_schema, on_progress=on_progress)
        if input_schema is None or isinstance(answer, Result) or not is_header_mismatch(answer):
            return answer
        listing = Preparation(transport, self._peer, self._terms.limits)
        current = await changed_schema(listing, params, input_schema)
        if current is None:
            return answer
        self.cache.invalidate("tools")
        return await transport.request(method, params, input_schema=current, on_progress=on_progress)

    def watch_task(self, task_id: str, on_state: OnTask) -> Callable[[], None]:
        """Tell ``on_state`` what the server tells of this task; see ``ports.Connection.watch_task``."""
        self.watch.watch_task(task_id, on_state)
        return partial(self.watch.forget_task, task_id)

    async def retire(self) -> str | None:
        """Close it for good and return once nothing of it is left; the reason where closing failed."""
        self._advance(ConnectionEvent.RETIRED)
        async with self._closing:
            if self._state is ConnectionState.RETIRING:
                if self._recovery is not None:
                    self._recovery.cancel()
                    await self._recovery_over.wait()
                self._close_failure = await self._close_transport()
                self.cache.close()
                self._advance(ConnectionEvent.CLOSED)
        return self._close_failure

    async def _open_and_list(self) -> None:
        """Have a fresh transport and the catalog it gave, within the connect timeout.

        Raises:
            Problem: the server cannot be prepared, or is silent.
        """
        awaits = "a connection"
        self._loss = None
        self.cache.begin()
        timeout_ms = self._terms.connect_timeout_ms
        with anyio.move_on_after(timeout_ms / 1000) as deadline:
            self._transport = await self._open_transport(self._lose)
            preparation = self._preparation(self._transport)
            try:
                found = await preparation.discover()
                # The stream stands before the lists are drained, so that no change falls between the two.
                await self.watch.start(self._transport, found.capabilities, self._group)
                self._catalog = await preparation.list_all(found)
            finally:
                awaits = preparation.awaits
        if deadline.cancelled_caught:
            raise self._silent(awaits, timeout_ms)
        if self._loss is not None:
            raise self._peer.unavailable(self._loss)

    def _preparation(self, transport: Transport) -> Preparation:
        terms = self._terms
        return Preparation(
            transport, self._peer, terms.limits, judge=terms.judge, enabled=self._enabled, lists=self.cache
        )

    def _silent(self, awaits: str, timeout_ms: int) -> Problem:
        """Return the Problem of a server that did not answer in time, with what is known of it."""
        reason = f"{awaits} did not come within {timeout_ms} ms (PLURNK_MCP_CONNECT_TIMEOUT)"
        if awaits == DISCOVER:
            reason = (
                f"{reason.replace(DISCOVER, f'an answer to {DISCOVER}', 1)}; a legacy server may stay silent"
            )
        lost = self._transport.account(reason) if self._transport is not None else Lost(reason)
        return self._peer.unavailable(lost)

    def _be_ready(self) -> None:
        self._refreshes.start(self._group)  # Where the group is over it raises, and nothing is READY.
        self._advance(ConnectionEvent.PREPARED)
        self._problem = None
        self.cache.settle()
        if self._authorization is not None:
            self._authorization.settle()
        self._ready_at = time.monotonic()

    async def _refresh(self, capabilities: frozenset[str]) -> bool:
        """Have these lists as they are now; return whether that is settled. A failure keeps the catalog."""
        transport, catalog, timeout_ms = self._transport, self.catalog, self._terms.connect_timeout_ms
        if transport is None or self._state is not ConnectionState.READY:
            return True
        preparation = self._preparation(transport)
        try:
            with anyio.move_on_after(timeout_ms / 1000) as deadline:
                catalog = await preparation.list_all(catalog, capabilities)
            problem = self._silent(preparation.awaits, timeout_ms) if deadline.cancelled_caught else None
        except Problem as raised:
            problem = raised.again()
        self._terms.measures.refreshes.add("ok" if problem is None else problem.code)
        if self._state is not ConnectionState.READY:
            return True  # lost meanwhile: what recovers it lists afresh
        if catalog != self._catalog or problem is not self._problem:
            self._catalog, self._problem = catalog, problem
            self._on_change(self)
        return problem is None or not problem.retryable

    def _outdated(self, changed: Filter) -> None:
        """Keep nothing of what may have changed, and have the lists listed again, without awaiting."""
        for capability in changed.lists:
            self.cache.invalidate(capability)
        for uri in changed.resources:
            self.cache.invalidate_resource(uri)
        self._refreshes.ask(changed.lists)

    def _watch_resources(self) -> None:
        self.watch.set_resources(self.cache.resources())

    def _tell_live(self) -> None:
        if self._state is ConnectionState.READY:
            self._on_change(self)

    def _demand(self, refusal: HttpRefusal) -> None:
        """Take note, without awaiting, that only a person can have the server serve again.

        A refusal for want of scope is the one request's matter: the others go on.
        """
        if self._state is ConnectionState.READY and refusal.status == 401:
            self._advance(ConnectionEvent.AUTHORIZATION_DEMANDED)
            self.watch.stop()
            self._problem = sign_in_required(self.server)
            self._on_change(self)

    def _take_grant(self) -> None:
        """Serve on, without awaiting, with what a person has just granted; what others may see is listed again."""
        if self._state is ConnectionState.AUTHORIZATION_REQUIRED:
            self._advance(ConnectionEvent.CALLBACK_ACCEPTED)
            self._be_ready()
            self._group.start_soon(self._watch_again)
            self._on_change(self)
        if self._state is ConnectionState.READY:
            self._refreshes.ask(frozenset(LISTS))

    async def _watch_again(self) -> None:
        """Watch and list again once what was stopped for want of a grant is over."""
        await self.watch.stopped()
        if self._transport is not None and self._state is ConnectionState.READY:
            await self.watch.start(self._transport, self.catalog.capabilities, self._group)

    def _lose(self, lost: Lost) -> None:
        """Take note, without awaiting, that the transport ended by itself; where READY, start to recover."""
        self._loss = lost
        if self._state is not ConnectionState.READY:
            return
        self._advance(ConnectionEvent.LOST)
        self.watch.stop()
        self._refreshes.stop()
        self._problem = self._peer.unavailable(lost)
        recovery, over, ready_for = anyio.CancelScope(), Latch(), time.monotonic() - self._ready_at
        self._group.start_soon(self._recover, recovery, over, ready_for)
        self._recovery, self._recovery_over = recovery, over  # Not before: a group that is over raises.
        self._on_change(self)

    async def _recover(self, scope: anyio.CancelScope, over: Latch, ready_for: float) -> None:
        """Prepare again, after ever longer waits, until the server is READY or the connection is retired."""
        try:
            with scope:
                while self._state is ConnectionState.RECOVERING:
                    await anyio.sleep(self._attempts.delay_after(ready_for))
                    ready_for = 0.0
                    await self._attempt()
        finally:
            self._recovery = None
            over.set()

    async def _attempt(self) -> None:
        """Try to be READY once; a failure is noted and shown."""
        try:
            async with self._terms.slot():
                await self._close_transport()  # the lost one, at the first attempt
                await self._open_and_list()
        except Problem as problem:
            self._problem = problem.again()
        except Exception:
            # The border of the owner task: one server never takes its workspace down.
            trace = f"recovery-{time.time_ns():x}"
            log.exception("recovery-failed", server=self.server, trace=trace)
            self._problem = Internal(trace)
        else:
            if self._state is not ConnectionState.RECOVERING:
                return  # retired meanwhile, which closes what was opened
            self._be_ready()
        self._terms.measures.restarts.add("ok" if self._problem is None else self._problem.code)
        self._on_change(self)
        if self._state is ConnectionState.RECOVERING:
            # What a failed attempt started does not wait for the next one.
            await self._close_transport()

    async def _close_transport(self) -> str | None:
        """Close the transport, if any, once nothing watches over it; return why that failed, if it did."""
        transport, failure = self._transport, None
        if transport is not None:
            transport.begin_close()
        try:
            await self._refreshes.stopped()
            await self.watch.stopped()
        finally:
            if transport is not None:
                failure = await transport.close()
        self._transport = None
        return failure

    def _advance(self, event: ConnectionEvent) -> None:
        before, self._state = self._state, advance(self._state, event)
        self._terms.measures.connection_moved(before, self._state)
