"""The three Protocols between the middle of the house and its adapters. SPEC §connection, §state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from anyio.abc import TaskGroup

from app.core.answers import Answer, Progress
from app.core.attachments import AttachmentRecord
from app.core.audit import AuditRow
from app.core.catalog import ServerCatalog
from app.core.connection_state import ConnectionState
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.json_value import JsonObject
from app.core.problem import Problem

Source: TypeAlias = Literal["service", "workspace"]


class Authorization(Protocol):
    """What one attachment was granted and how that is renewed, in memory only; opaque elsewhere. SPEC §oauth."""

    @property
    def has_token(self) -> bool:
        """Whether it holds a token that would be lost with it."""
        ...


class AuthorizationAttempt(Protocol):
    """One sign-in that a person was asked for. Use it once; it opens nothing and needs no closing."""

    @property
    def url(self) -> str:
        """Where the person signs in."""
        ...

    @property
    def expires_at(self) -> datetime:
        """When the callback comes too late, in UTC, for people: a wall clock may be set meanwhile."""
        ...

    @property
    def seconds_left(self) -> float:
        """How long the callback has still time, whatever the wall clock says; 0 once it is too late."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether no callback can complete it any more: it is completed, expired, or its ``state`` was used up."""
        ...

    @property
    def authorization(self) -> Authorization:
        """What is granted once it is completed; the next ``Target`` takes it."""
        ...

    async def complete(self, callback_url: str) -> None:
        """Have a token on return: the callback is judged and its code exchanged.

        Raises:
            OAuthCallbackInvalid: a wrong callback, or a second one; where ``is_over`` is False nothing was used up.
            OAuthMetadataInvalid: the authorization server gives no usable token.
            ServerUnavailable: it cannot be reached.
        """
        ...


class AuthorizationDemanded(Exception):
    """A connection cannot be opened before a person has signed in; everything that was opened is closed."""

    def __init__(self, server: str, attempt: AuthorizationAttempt | None) -> None:
        """Take the attempt that was begun; None where nobody asked for one, as when a workspace hydrates."""
        super().__init__(f"server '{server}' demands authorization")
        self.server = server
        self.attempt = attempt


@dataclass(frozen=True, slots=True)
class Target:
    """What a connection is wanted to, and by whom."""

    workspace: str
    definition: StdioDefinition | HttpDefinition
    """Unexpanded; the connector expands it while it prepares."""
    source: Source
    is_explicit: bool
    """Asked for by an action: lists afresh, gets ``too-many`` instead of a place in the queue, may begin a sign-in."""
    authorization: Authorization | None = None
    """What was granted to this very definition before: a completed sign-in, or the connection it replaces."""


class Connection(Protocol):
    """One prepared connection to one server, owned by the workspace that asked for it."""

    @property
    def server(self) -> str:
        """The server's name in its workspace."""
        ...

    @property
    def state(self) -> ConnectionState:
        """Where it stands."""
        ...

    @property
    def catalog(self) -> ServerCatalog:
        """What the server listed when it was last prepared or refreshed."""
        ...

    @property
    def problem(self) -> Problem | None:
        """Why it is not READY, or why its lists could not be refreshed; else None."""
        ...

    @property
    def is_live(self) -> bool:
        """Whether the server's changes are watched: its catalog then follows them by itself."""
        ...

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        input_schema: bytes | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Answer:
        """Return the peer's answer to one request; ``params`` without ``_meta``, which the wire stamps.

        Cancelling the caller cancels the request the way its transport does. ``input_schema`` is the tool's input
        schema as listed, from which the HTTP transport mirrors ``x-mcp-header`` parameters. ``on_progress`` asks for
        progress; only accepted notifications reach it, in the caller's event loop, before the answer.

        Raises:
            RequestFault: no answer, by kind.
        """
        ...

    def watch_task(self, task_id: str, on_state: Callable[[JsonObject], None]) -> Callable[[], None]:
        """Call ``on_state`` with each state of the task that the server tells of, until what is returned is called.

        Without awaiting, in the order it told, in the caller's event loop. A server need not tell anything.
        """
        ...

    @property
    def authorization(self) -> Authorization | None:
        """What it shows its server besides the definition's own headers; None where that never changes."""
        ...

    async def begin_authorization(self, challenge: str | None) -> AuthorizationAttempt:
        """Begin a sign-in that satisfies this Bearer challenge; once it is completed the connection uses it.

        Raises:
            Problem: none can be begun: authorization-refused, oauth-metadata-invalid, server-unavailable,
                address-refused.
        """
        ...

    async def retire(self) -> str | None:
        """Close it for good and return once nothing of it is left; the reason where closing failed, else None.

        Never raises but for cancellation, idempotent; requests in flight end with AnswerLost.
        """
        ...


class Connector(Protocol):
    """Makes connections."""

    async def open(
        self, target: Target, group: TaskGroup, on_change: Callable[[Connection], None]
    ) -> Connection:
        """Return a READY connection whose tasks live in ``group``.

        One call is one whole preparation under ``PLURNK_MCP_CONNECT_TIMEOUT``: expand, connect, discover, drain the
        lists. ``on_change`` is called, without awaiting, each time its state, catalog, problem or
        ``is_live`` changes afterwards.
        A failed or cancelled call has closed everything it opened.

        Raises:
            Problem: reference-*, *-refused, server-unavailable, protocol-revision-unsupported, capability-required,
                catalog-invalid, authorization-refused, too-many, oauth-metadata-invalid,
                oauth-client-credentials-failed.
            AuthorizationDemanded: a person has to sign in first.
        """
        ...

    async def close(self) -> None:
        """Close what connections share: the HTTP pool and the reaper."""
        ...


class Store(Protocol):
    """What survives a restart."""

    async def load(self, workspace: str) -> Mapping[str, AttachmentRecord]:
        """Return the workspace's durable map.

        Raises:
            StoreUnavailable: the database could not be read.
        """
        ...

    async def apply(
        self, workspace: str, name: str, record: AttachmentRecord | None, row: AuditRow | None = None
    ) -> None:
        """Write one entry, or drop it where ``record`` is None, and the audit's row, in one transaction.

        Raises:
            StoreUnavailable: nothing was written.
        """
        ...

    async def workspaces(self) -> list[str]:
        """Return the names of the workspaces with at least one row, sorted."""
        ...

    async def record(self, row: AuditRow) -> None:
        """Append one row to the audit table and forget what is older than 90 days.

        Raises:
            StoreUnavailable: nothing was written.
        """
        ...

    async def audit_rows(self, *, limit: int, workspace: str | None) -> list[AuditRow]:
        """Return at most ``limit`` audit rows, the newest first, of one workspace or of all.

        Raises:
            StoreUnavailable: the database could not be read.
        """
        ...
