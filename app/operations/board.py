"""Board: where a workspace's operations are begun, answered, cancelled and looked up. SPEC §calls, §agui.

Interrupts belong to the workspace: any client of it may answer. A resume covers exactly one operation and all
its open interrupts; the identical one repeats the result, a different one conflicts, and one that is refused
consumes nothing.
"""

from collections.abc import Awaitable, Mapping, Sequence

import anyio

from app.core.events import Interrupt
from app.core.interrupts import ResumeEntry, fingerprint
from app.core.json_value import JsonObject
from app.core.operation import Completed, Failed, Step, Work
from app.core.operation_problems import (
    InterruptConflict,
    InterruptExpired,
    InterruptNotFound,
    OperationNotFound,
    ResumeIncomplete,
)
from app.core.telemetry import Telemetry
from app.operations.endings import Rest, Settled, StillOpen, Waiting, Working, settled
from app.operations.open_operation import Admit, OpenOperation
from app.operations.open_operations import Allowance, OpenOperations
from app.operations.settled import KEPT_S, SettledOperation, SettledOperations, Shelf
from app.operations.telling import Observe, tell_result, tell_started
from app.settings import Settings
from app.workspaces.workspace import Workspace

__all__ = ["Board", "Boards", "ResumeEntry", "Settled", "StillOpen", "Waiting", "Working"]


class Boards:
    """The board of every workspace, made on first use. Implements ``manager.Kept``."""

    def __init__(
        self, settings: Settings, *, kept_s: float = KEPT_S, telemetry: Telemetry | None = None
    ) -> None:
        self._settings = settings
        self._telemetry = telemetry or Telemetry()
        self._kept_s = kept_s
        self._allowance = Allowance(settings.max_operations)
        self._shelf = Shelf()
        self._boards: dict[str, Board] = {}

    def of(self, workspace: Workspace) -> "Board":
        """Return the workspace's board."""
        board = self._boards.get(workspace.name)
        if board is None:
            board = self._boards[workspace.name] = Board(
                workspace,
                settings=self._settings,
                allowance=self._allowance,
                kept=SettledOperations(self._shelf, kept_s=self._kept_s),
                telemetry=self._telemetry,
            )
        return board

    @property
    def open_count(self) -> int:
        """How many operations are open in the daemon."""
        return self._allowance.count

    def is_kept(self, workspace: Workspace) -> bool:
        """Return whether an operation of the workspace is open, or has ended and is kept."""
        board = self._boards.get(workspace.name)
        return board is not None and not board.is_empty

    def forget(self, workspace: Workspace) -> None:
        """Keep nothing of the workspace any more; none of its operations is open."""
        board = self._boards.pop(workspace.name, None)
        if board is not None:
            board.forget()

    def shut_down(self) -> None:
        """Settle every operation as cancelled by shutdown, without waiting, and begin no other."""
        self._allowance.is_closed = True
        for board in self._boards.values():
            board.shut_down()

    async def finish(self) -> None:
        """Return once every server was told to stop the tasks nobody waits for, or the time for that is over."""
        async with anyio.create_task_group() as group:
            for board in self._boards.values():
                group.start_soon(board.finish)


class Board:
    """The operations of one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        settings: Settings,
        allowance: Allowance,
        kept: SettledOperations,
        telemetry: Telemetry,
    ) -> None:
        self.workspace = workspace
        self.settings = settings
        self._settled = kept
        self._open = OpenOperations(
            workspace, settings=settings, allowance=allowance, kept=kept, telemetry=telemetry
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is open and nothing is kept."""
        return not len(self._open) and not len(self._settled)

    def run(
        self,
        operation_id: str,
        work: Work,
        *,
        admit: Admit,
        observe: Observe,
        thread_id: str | None = None,
        arguments: JsonObject | None = None,
    ) -> Awaitable[Rest]:
        """Return, once awaited, how the new operation came to rest; ``arguments`` are what a tool call's run sees.

        Raises:
            TooMany: there are as many operations as there may be.
            ShuttingDown: the daemon is going down.
            Problem: the one it ended in.
        """
        operation = self._open.begin(operation_id, work, admit=admit, thread_id=thread_id)

        def first() -> Step:
            tell_started(operation, arguments or {}, observe)
            return operation.machine.begin()

        return self._open.drive(operation, first, observe)

    async def resume(
        self, entries: Sequence[ResumeEntry], *, observe: Observe, thread_id: str | None = None
    ) -> Rest:
        """Return how the operation came to rest after all its open interrupts were answered at once.

        Raises:
            InterruptNotFound: no such interrupt is known.
            InterruptExpired: its time is over.
            InterruptConflict: it was answered before, differently.
            ResumeIncomplete: not exactly one operation with all its open interrupts.
            AnswerInvalid: an answer does not fit its question.
            Problem: the one the operation ended in.
        """
        del thread_id  # Any client of the workspace may answer; the thread id is no credential.
        given = {entry.interrupt_id: entry for entry in entries}
        if not given:
            raise ResumeIncomplete("it answers nothing")
        if len(given) < len(entries):
            raise ResumeIncomplete("it answers one question twice")
        taken = await self._take(given, observe=observe, is_whole=True)
        assert not isinstance(taken, StillOpen)  # noqa: S101 a whole set leaves none open
        return taken

    async def answer(self, entry: ResumeEntry, *, observe: Observe) -> Rest | StillOpen:
        """Return how the operation came to rest after its last answer, or which interrupts are open still.

        Raises:
            Problem: as ``resume``, except ResumeIncomplete.
        """
        return await self._take({entry.interrupt_id: entry}, observe=observe, is_whole=False)

    def cancel(self, operation_id: str) -> None:
        """End the operation as cancelled; the run that waits for it ends so too. Idempotent.

        Raises:
            OperationNotFound: it is unknown, or has ended otherwise.
        """
        operation = self._open.find(operation_id)
        if operation is not None:
            operation.machine.cancel("workspace.mcp.cancel")
            self._open.end(operation)
            return
        known = self._settled.find(operation_id)
        if known is None or not known.is_cancelled:
            raise OperationNotFound(operation_id)

    def result_of(self, operation_id: str) -> Settled | Waiting | Working:
        """Return where the operation stands.

        Raises:
            OperationNotFound: it is neither open nor kept.
            Problem: the one it ended in.
        """
        operation = self._open.find(operation_id)
        if operation is not None:
            self._open.expire_due(operation)
        if operation is not None and not operation.machine.is_ended:
            kind = operation.machine.work.kind
            is_waiting = operation.is_waiting
            return (
                Waiting(operation_id, kind, operation.open_interrupts)
                if is_waiting
                else Working(operation_id, kind)
            )
        known = self._settled.find(operation_id)
        if known is None:
            raise OperationNotFound(operation_id)
        return settled(known.id, known.kind, known.ending)

    def operation_of(self, interrupt: str) -> str | None:
        """Return the id of the open operation that put this interrupt, answered or not."""
        operation = self._open.of_interrupt(interrupt)
        return None if operation is None else operation.id

    def open_interrupts(self, thread_id: str | None = None) -> tuple[Interrupt, ...]:
        """Return the open interrupts of operations begun on the thread, or of all; oldest first."""
        for operation in self._open.all():
            self._open.expire_due(operation)
        return tuple(
            interrupt
            for operation in self._open.all()
            if thread_id is None or operation.thread_id == thread_id
            for interrupt in operation.open_interrupts
        )

    def kind_of(self, interrupt: str) -> str | None:
        """Return the kind of action whose operation put this interrupt, where it is open or kept."""
        operation = self._open.of_interrupt(interrupt)
        if operation is not None:
            return operation.machine.work.kind
        known = self._settled.of_interrupt(interrupt)
        return None if known is None else known.kind

    def forget(self) -> None:
        """Keep nothing of what has ended; nothing is open."""
        self._settled.clear()
        self._open.forget()

    async def finish(self) -> None:
        """Return once the servers were told about tasks of ended operations; bounded."""
        await self._open.task_cancels.finish()

    def shut_down(self) -> None:
        """End every operation as cancelled by shutdown."""
        for operation in self._open.all():
            operation.machine.cancel("shutdown")
            self._open.end(operation)
        self._settled.clear()

    # Taking answers

    async def _take(
        self, given: Mapping[str, ResumeEntry], *, observe: Observe, is_whole: bool
    ) -> Rest | StillOpen:
        """Find whose interrupts these are, and take the answers or repeat what they led to."""
        found = self._found(given)
        if isinstance(found, SettledOperation):
            return self._repeated(found, given, observe)
        fresh = self._acceptable(found, given, is_whole=is_whole)
        found.stage(fresh)
        left = found.open_interrupts
        if found.is_waiting and left and not given.keys().isdisjoint(found.questions):
            self._open.answered_in_part(found)
            return StillOpen(found.id, found.machine.work.kind, left)
        if fresh:
            return await self._open.drive(found, lambda: self._open.go_on(found), observe)
        return await self._rest_of(found, observe)

    def _found(self, given: Mapping[str, ResumeEntry]) -> OpenOperation | SettledOperation:
        """Return the one operation that put all of these interrupts.

        Raises:
            InterruptNotFound: one is unknown.
            ResumeIncomplete: they are of several operations.
        """
        found = {operation.id: operation for operation in map(self._of_interrupt, given)}
        if len(found) > 1:
            raise ResumeIncomplete(f"it answers questions of {len(found)} operations")
        return next(iter(found.values()))

    def _of_interrupt(self, interrupt: str) -> OpenOperation | SettledOperation:
        operation = self._open.of_interrupt(interrupt)
        if operation is not None:
            self._open.expire_due(operation)
        if operation is not None and not operation.machine.is_ended:
            return operation
        known = self._settled.of_interrupt(interrupt)
        if known is None:
            raise InterruptNotFound(interrupt)
        return known

    @staticmethod
    def _acceptable(
        operation: OpenOperation, given: Mapping[str, ResumeEntry], *, is_whole: bool
    ) -> dict[str, ResumeEntry]:
        """Return the new answers; nothing was consumed where it raises."""
        is_current = not given.keys().isdisjoint(operation.questions)
        missing = [each.id for each in operation.open_interrupts if each.id not in given]
        if is_whole and is_current and missing:
            raise ResumeIncomplete(
                f"{len(missing)} open question(s) of its operation are missing", missing=missing
            )
        return operation.new_answers(given)

    async def _rest_of(self, operation: OpenOperation, observe: Observe) -> Rest:
        """Return where an operation comes to rest that another client's identical answer drives."""
        while not (operation.machine.is_ended or operation.is_waiting):
            if operation.rested is None:
                operation.rested = anyio.Event()
            await operation.rested.wait()
        if isinstance(operation.machine.ending, Completed | Failed):
            tell_result(operation.id, operation.machine.work.tool_call_id, operation.machine.ending, observe)
        return self._open.outcome(operation)

    @staticmethod
    def _repeated(known: SettledOperation, given: Mapping[str, ResumeEntry], observe: Observe) -> Settled:
        """Return the result again for identical answers.

        Raises:
            InterruptExpired: a question was open until its time was over.
            InterruptConflict: an answer differs from the one that was taken.
            Problem: the one the operation ended in.
        """
        ending = known.ending
        for interrupt, entry in given.items():
            if interrupt in known.unanswered:
                if known.is_expired and isinstance(ending, Failed):
                    raise InterruptExpired(interrupt).with_outcome(ending.problem.outcome)
            elif known.answers[interrupt] != fingerprint(entry):
                raise InterruptConflict(interrupt)
        tell_result(known.id, known.tool_call_id, ending, observe)
        return settled(known.id, known.kind, ending)
