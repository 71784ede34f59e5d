"""THE protocol: prepare a candidate, commit it at quiescence, retire what it replaces. SPEC §lifecycle.

Attach, replace, reconnect, restore and detach are this one function with different ``Change`` values. Everything that
can refuse stands before the write; in it only the store can fail, and then nothing was published. From its turn on a
change is committed by a task of the workspace: a client that disconnects during the write would leave the database and
the memory apart. A change whose server demands that a person signs in is parked, and goes on with the callback.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

import anyio

from app.concurrency import Latch, cancel_scope
from app.core.attachments import AttachmentRecord
from app.core.audit import AuditTrail
from app.core.definitions import HttpDefinition, StdioDefinition
from app.core.events import PreparationEnded, PreparationStarted, RunEvent
from app.core.oauth_problems import OAuthTargetConflict, sign_in_required
from app.core.problems import ServerChanged, ServerExists, ShuttingDown
from app.core.snapshot import ServerSnapshot
from app.ports import Authorization, AuthorizationDemanded, Connection, Source, Target
from app.workspaces.pending import ParkedChange
from app.workspaces.preparations import Preparation

Observe = Callable[[RunEvent], None]

if TYPE_CHECKING:
    from app.workspaces.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Write:
    """What becomes durable: the workspace's record of the server, or None for no record at all."""

    record: AttachmentRecord | None


@dataclass(frozen=True, slots=True)
class Change:
    """One wanted change of one server, and what its author saw."""

    name: str
    action: str
    """The kind of action that asked for it."""
    definition: StdioDefinition | HttpDefinition | None
    """What to connect to; None for detach."""
    source: Source
    write: Write | None
    """None leaves the store alone: reconnect."""
    seen_generation: int
    """The server's generation when the change was asked for; drift refuses it."""
    is_attach: bool = False
    """The name must not be effective at commit."""

    @property
    def unchanged(self) -> StdioDefinition | HttpDefinition | None:
        """The definition where the attachment, and so what was granted to it, stays as it is: a reconnect's."""
        return self.definition if self.write is None else None


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is made and what it replaced is closed."""

    change: Change
    server: ServerSnapshot[Connection] | None
    """None after a detach."""


ChangeOutcome: TypeAlias = Committed | ParkedChange


async def change_server(
    workspace: "Workspace", change: Change, observe: Observe, trail: AuditTrail | None = None
) -> ChangeOutcome:
    """Return the committed change, or the parked one where a person has to sign in first.

    What becomes durable does so together with its row of the audit.

    Raises:
        Problem: nothing was stored, published or closed, except the candidate; what was pending, is.
    """
    with workspace.preparations.running(change.name) as preparation:
        granted = workspace.grants.of(change.unchanged) if change.unchanged is not None else None
        return await _change(workspace, change, preparation, observe, granted, trail)


async def complete_change(
    workspace: "Workspace",
    parked: ParkedChange,
    callback_url: str,
    observe: Observe,
    trail: AuditTrail | None = None,
) -> ChangeOutcome:
    """Go on with a parked change after its sign-in: return it committed, or parked again for another one.

    Raises:
        OAuthCallbackInvalid: it stays parked where the callback used nothing up.
        OAuthTargetConflict: the server was changed meanwhile.
        ServerBusy: the change could not be committed; the callback was not looked at.
        Problem: nothing was stored, published or closed, except the candidate.
    """
    change = parked.change
    with workspace.preparations.running(change.name) as preparation:
        workspace.gate(change.name).require_quiet()
        try:
            await parked.attempt.complete(callback_url)
        finally:
            if parked.attempt.is_over:
                workspace.pending.settle(parked)
        if change.unchanged is not None and change.seen_generation == workspace.generation(change.name):
            # Whatever becomes of this reconnect, the next one need not ask the person again.
            workspace.grants.keep(change.unchanged, parked.attempt.authorization)
        try:
            return await _change(workspace, change, preparation, observe, parked.attempt.authorization, trail)
        except (ServerChanged, ServerExists):
            raise OAuthTargetConflict(change.name) from None


async def _change(
    workspace: "Workspace",
    change: Change,
    preparation: Preparation,
    observe: Observe,
    granted: Authorization | None,
    trail: AuditTrail | None,
) -> ChangeOutcome:
    """Prepare and commit the change, or park it."""
    if change.definition is None:
        return Committed(change, await _commit(workspace, change, None, preparation, trail))
    target = Target(
        workspace=workspace.name,
        definition=change.definition,
        source=change.source,
        is_explicit=True,
        authorization=granted,
    )
    try:
        candidate = await _prepare(workspace, change, target, observe)
    except AuthorizationDemanded as demanded:
        return _parked(workspace, change, demanded, preparation)
    return Committed(change, await _commit(workspace, change, candidate, preparation, trail))


def _parked(
    workspace: "Workspace", change: Change, demanded: AuthorizationDemanded, preparation: Preparation
) -> ParkedChange:
    """Return the change after parking it, where it could still be committed."""
    if demanded.attempt is None:
        raise sign_in_required(change.name) from None
    workspace.require_no_drift(change)
    preparation.begin_commit()
    parked = ParkedChange(change, demanded.attempt)
    workspace.pending.park(parked)
    return parked


async def _prepare(workspace: "Workspace", change: Change, target: Target, observe: Observe) -> Connection:
    observe(PreparationStarted(change.name))
    try:
        candidate = await workspace.open(target)
    except BaseException:
        observe(PreparationEnded(change.name))
        raise
    try:
        observe(PreparationEnded(change.name))
    except BaseException:
        await _discard(candidate)
        raise
    return candidate


async def _commit(
    workspace: "Workspace",
    change: Change,
    candidate: Connection | None,
    preparation: Preparation,
    trail: AuditTrail | None,
) -> ServerSnapshot[Connection] | None:
    """Make the change durable, then visible, then retire what it replaces; or close the candidate, changing nothing."""
    commit = _Commit(workspace, change, candidate, preparation, trail)
    if not workspace.owner.start(commit.run):
        await _discard(candidate)
        raise ShuttingDown
    try:
        await commit.over.wait()
    except BaseException:
        commit.scope.cancel()
        with anyio.CancelScope(shield=True):
            await commit.over.wait()
        raise
    if commit.failure is not None:
        raise commit.failure
    if commit.retirement is not None:
        await commit.retirement.wait()
    return commit.committed


class _Commit:
    """One commit, in a task of the workspace: whoever waits for it cannot leave it half done, however it leaves.

    A shield in the caller's task would keep out a cancelled scope, but not a cancellation of the task itself.
    """

    def __init__(
        self,
        workspace: "Workspace",
        change: Change,
        candidate: Connection | None,
        preparation: Preparation,
        trail: AuditTrail | None,
    ) -> None:
        self._workspace = workspace
        self._trail = trail
        self._change = change
        self._candidate = candidate
        self._preparation = preparation
        self.scope = cancel_scope()
        """Cancel it to end the commit, where it has not begun to write."""
        self.over = Latch()
        self.failure: Exception | None = ShuttingDown()
        """Why nothing was changed; None where it was."""
        self.committed: ServerSnapshot[Connection] | None = None
        self.retirement: Latch | None = None
        """Is set once what the change replaced is closed."""

    async def run(self) -> None:
        """Commit, or note why not."""
        try:
            with self.scope:
                await self._run()
        except Exception as failure:  # noqa: BLE001 the border of a task: its caller raises it
            self.failure = failure
        finally:
            self.over.set()

    async def _run(self) -> None:
        try:
            await self._committed()
        except BaseException:
            await _discard(self._candidate)
            raise

    async def _committed(self) -> None:
        workspace, change = self._workspace, self._change
        async with workspace.committing(), workspace.gate(change.name).quiet():
            workspace.require_no_drift(change)
            successor = workspace.successor(change, self._candidate)
            self._preparation.begin_commit()
            with anyio.CancelScope(shield=True):
                if change.write is not None:
                    await self._write(change.write.record)
                self.retirement = workspace.publish(change, successor)
                self.committed = workspace.snapshot.servers.get(change.name)
                self.failure = None

    async def _write(self, record: AttachmentRecord | None) -> None:
        """Make the record durable and, in the same transaction, that the action did so."""
        row = self._trail.row("ok", datetime.now(UTC)) if self._trail is not None else None
        await self._workspace.store.apply(self._workspace.name, self._change.name, record, row)
        if self._trail is not None:
            self._trail.is_left = True


async def _discard(candidate: Connection | None) -> None:
    if candidate is not None:
        with anyio.CancelScope(shield=True):
            await candidate.retire()
