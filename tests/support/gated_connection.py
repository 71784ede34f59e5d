"""Peers at the Connection port whose every answer waits until the test gives it, and what opens them."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import orjson
from anyio.abc import TaskGroup

from app.core.answers import Answer, Progress, RequestFault, Result
from app.core.catalog import Entry, ServerCatalog
from app.core.connection_state import ConnectionState
from app.core.json_value import JsonObject
from app.core.problem import Problem
from app.core.problems import AuthorizationRefused
from app.ports import Authorization, AuthorizationAttempt, AuthorizationDemanded, Connection, Target


@dataclass(eq=False)
class GatedRequest:
    """One request as it reached the peer."""

    method: str
    params: JsonObject
    input_schema: bytes | None
    on_progress: Callable[[Progress], None] | None
    is_cancelled: bool = False
    _answer: Answer | RequestFault | None = None
    _gate: anyio.Event = field(default_factory=anyio.Event)

    def answer(self, answer: Answer | RequestFault) -> None:
        """Let the request end in this answer, or raise this fault."""
        self._answer = answer
        self._gate.set()

    def result(self, value: JsonObject) -> None:
        """Let the request end in this result."""
        self.answer(Result(value, len(orjson.dumps(value))))

    async def outcome(self) -> Answer:
        """Return what ``answer`` gave."""
        try:
            await self._gate.wait()
        except anyio.get_cancelled_exc_class():
            self.is_cancelled = True
            raise
        assert self._answer is not None
        if isinstance(self._answer, RequestFault):
            raise self._answer
        return self._answer


class GatedConnection:
    """A prepared connection; ``automatic`` answers at once where it is set."""

    def __init__(self, server: str, catalog: ServerCatalog) -> None:
        self.server = server
        self.catalog = catalog
        self.state = ConnectionState.READY
        self.problem: Problem | None = None
        self.is_live = False
        self.authorization: Authorization | None = None
        self.attempts: list[AuthorizationAttempt] = []
        self.requests: list[GatedRequest] = []
        self.automatic: Callable[[GatedRequest], Answer | RequestFault | None] = lambda _: None
        self.is_retired = False
        self.close_failure: str | None = None
        self.watched: dict[str, Callable[[JsonObject], None]] = {}
        """Who hears of which task."""
        self._new: deque[GatedRequest] = deque()
        self._arrived = anyio.Event()

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        input_schema: bytes | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Answer:
        """Return what the test answers."""
        request = GatedRequest(method, params, input_schema, on_progress)
        self.requests.append(request)
        self._new.append(request)
        self._arrived.set()
        if (answer := self.automatic(request)) is not None:
            request.answer(answer)
        return await request.outcome()

    def watch_task(self, task_id: str, on_state: Callable[[JsonObject], None]) -> Callable[[], None]:
        """Note who hears of the task, for the test to tell."""
        self.watched[task_id] = on_state

        def forget() -> None:
            self.watched.pop(task_id, None)

        return forget

    async def begin_authorization(self, challenge: str | None) -> AuthorizationAttempt:
        """Return the next of ``attempts``; refuse where there is none."""
        del challenge
        if not self.attempts:
            raise AuthorizationRefused(self.server, "it has no way to authorize")
        return self.attempts.pop(0)

    async def next_request(self) -> GatedRequest:
        """Return the oldest request that was not returned yet; wait for one."""
        with anyio.fail_after(5):
            while not self._new:
                self._arrived = anyio.Event()
                await self._arrived.wait()
        return self._new.popleft()

    def lose(self, problem: Problem) -> None:
        """Be lost and recovering; the connector's ``on_change`` tells of it."""
        self.state, self.problem = ConnectionState.RECOVERING, problem

    async def retire(self) -> str | None:
        """Be closed; say why not where the test says so."""
        self.is_retired = True
        self.state = ConnectionState.CLOSED
        return self.close_failure


class GatedConnector:
    """Opens gated connections to one catalog for each server; ``catalogs`` may change between two opens."""

    def __init__(self, catalogs: dict[str, ServerCatalog]) -> None:
        self.catalogs = catalogs
        self.opened: list[GatedConnection] = []
        self.refusal: Problem | None = None
        self.failing: dict[str, Problem] = {}
        """Servers that cannot be connected, and why."""
        self.protected: set[str] = set()
        """Servers that want a token."""
        self.attempts: list[AuthorizationAttempt] = []
        """The sign-ins that they begin, one after the other."""
        self.gate: anyio.Event | None = None
        """Where it is set, whoever opens then waits for it."""
        self.opening = anyio.Event()
        self.on_change: Callable[[Connection], None] | None = None

    async def open(
        self,
        target: Target,
        group: TaskGroup,  # noqa: ARG002 a gated connection has no task
        on_change: Callable[[Connection], None],
    ) -> GatedConnection:
        """Return a connection, or raise a refusal, or demand a sign-in of who shows no token."""
        name, shown = target.definition.name, target.authorization
        if self.gate is not None:
            self.opening.set()
            await self.gate.wait()
        if (refusal := self.refusal or self.failing.get(name)) is not None:
            raise refusal.again()
        self.on_change = on_change
        if name in self.protected and not (shown and shown.has_token):
            raise AuthorizationDemanded(name, self.attempts.pop(0) if target.is_explicit else None)
        connection = GatedConnection(name, self.catalogs[name])
        connection.authorization = shown
        self.opened.append(connection)
        return connection

    async def close(self) -> None:
        """Have nothing to close."""


def tool_entry(name: str, **members: Any) -> Entry:
    """Return one entry of ``tools/list``."""
    tool = {"name": name, "inputSchema": {"type": "object"}, **members}
    return Entry(name, orjson.dumps(tool))


def catalog(
    tools: Sequence[Entry] = (),
    *,
    resources: Sequence[Entry] = (),
    templates: Sequence[Entry] = (),
    prompts: Sequence[Entry] = (),
    capabilities: JsonObject | None = None,
) -> ServerCatalog:
    """Return a catalog that offers everything, or what ``capabilities`` says."""
    offered: JsonObject = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
    return ServerCatalog(
        protocol_version="2026-07-28",
        server_info={"name": "gated", "version": "1"},
        capabilities=offered if capabilities is None else capabilities,
        instructions=None,
        tools=tuple(tools),
        resources=tuple(resources),
        resource_templates=tuple(templates),
        prompts=tuple(prompts),
    )
