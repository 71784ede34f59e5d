"""OpenOperations: a workspace's operations from begin to end, and the loop that drives one. SPEC §calls.

An operation runs in the task of the request that drives it: no task is started for it. One that waits for a
person is data and a timer. Whatever ends it (its result, its deadline, ``workspace.mcp.cancel``, the client's
disconnect, the daemon's shutdown), ``_ended`` runs once and ``release`` follows as soon as no task is in its
request.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, assert_never

import anyio

from app.concurrency import Stop
from app.core.answers import AnswerLost, Progress, RequestFault
from app.core.events import OperationProgressed
from app.core.operation import Operation, Work
from app.core.operation_state import OperationState
from app.core.problem import Problem
from app.core.problems import Internal, ServerChanged, ServerNotFound, ShuttingDown, TooMany
from app.core.rfc3339 import rfc3339
from app.core.steps import Ask, Authorize, Send, SignIn, Step, Wait
from app.core.telemetry import Telemetry
from app.operations.deadlines import Deadlines
from app.operations.endings import Rest, Waiting, settled
from app.operations.live_progress import LiveProgress
from app.operations.open_operation import Admit, OpenOperation, new_interrupt, operation_span
from app.operations.settled import SettledOperation, SettledOperations, kept_end
from app.operations.sign_ins import CallbackRefused, SignIns
from app.operations.state_entries import begun_entry, interaction_entry, operation_entry
from app.operations.task_cancels import TaskCancels
from app.operations.telling import Observe, tell_result
from app.settings import Settings
from app.workspaces.workspace import Lease, Workspace

_GOES_ON: Final = (Send, Wait, Authorize, SignIn)
"""Steps after which there is another one."""
_NONE: Final = frozenset[str]()


class Allowance:
    """How many operations the daemon has open, over all workspaces."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = 0
        self.is_closed = False


class OpenOperations:
    """Every open operation of one workspace."""

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
        self._loop = asyncio.get_running_loop()
        self._allowance = allowance
        self._kept = kept
        self._telemetry = telemetry
        self.task_cancels = TaskCancels(workspace.owner)
        self._sign_ins = SignIns(workspace.pending)
        self._open: dict[str, OpenOperation] = {}
        self._by_interrupt: dict[str, OpenOperation] = {}
        self._live_progress = LiveProgress(self._show_progress)
        self._deadlines = Deadlines(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def forget(self) -> None:
        """Hold nothing any more, not even a timer; none is open."""
        self._deadlines.stop()

    def find(self, operation: str) -> OpenOperation | None:
        """Return the open operation of this id."""
        return self._open.get(operation)

    def of_interrupt(self, interrupt: str) -> OpenOperation | None:
        """Return the open operation that put this interrupt, answered or not."""
        return self._by_interrupt.get(interrupt)

    def all(self) -> tuple[OpenOperation, ...]:
        """Return every open operation, oldest first."""
        return tuple(self._open.values())

    def begin(self, operation_id: str, work: Work, *, admit: Admit, thread_id: str | None) -> OpenOperation:
        """Return a new open operation, counted and visible; ``drive`` it next, without an await in between.

        Raises:
            TooMany: this workspace or the daemon has as many as it may.
            ShuttingDown: the daemon is going down.
        """
        self._require_room()
        now = time.monotonic()
        operation = OpenOperation(
            id=operation_id,
            machine=Operation(operation_id, work),
            thread_id=thread_id,
            deadline=now + self.settings.request_timeout_ms / 1000,
            admit=admit,
            span=operation_span(self._telemetry.tracer, work),
        )
        self._open[operation_id] = operation
        self._allowance.count += 1
        self._deadlines.heed(operation)
        self.workspace.state.add("operations", operation_id, partial(begun_entry, work))
        return operation

    async def drive(self, operation: OpenOperation, first: Callable[[], Step], observe: Observe) -> Rest:
        """Return when the operation has ended or waits, performing steps from the first one on until then.

        Cancelling this call ends the operation as cancelled by disconnect; the connection tells the peer.

        Raises:
            OAuthCallbackInvalid: its question for a callback is as open as before.
            Problem: the one it ended in.
        """
        machine = operation.machine
        operation.driven = stop = Stop(self._loop)
        try:
            with stop:
                step = first()
                while isinstance(step, _GOES_ON):
                    work = self._perform(operation, step, observe)
                    step = await (work if operation.span is None else operation.span.around(work))
                if isinstance(step, Ask):
                    return self._park(operation, step)
            if machine.ending is None:
                machine.time_out(self.settings.request_timeout_ms)
            tell_result(operation.id, machine.work.tool_call_id, machine.ending, observe)
        except anyio.get_cancelled_exc_class():
            machine.cancel("disconnect")
            raise
        except CallbackRefused as refused:
            self._park_again(operation)
            raise refused.problem from None
        except Exception:
            machine.fail(Internal(operation.id))
            raise
        finally:
            operation.driven = None
            if machine.ending is not None:
                self._ended(operation)
                operation.release()
        return self.outcome(operation)

    def outcome(self, operation: OpenOperation) -> Rest:
        """Return where the operation came to rest.

        Raises:
            Problem: the one it ended in.
        """
        machine = operation.machine
        if machine.ending is not None:
            return settled(operation.id, machine.work.kind, machine.ending)
        return Waiting(operation.id, machine.work.kind, operation.open_interrupts)

    def go_on(self, operation: OpenOperation) -> Step:
        """Return the step after the last open question was answered; none of them is open any more."""
        self._drop_timer(operation)
        step = operation.machine.answered(operation.answered_set)
        if not operation.machine.is_ended:
            with self.workspace.state.one_change():
                for interrupt in operation.questions:
                    self.workspace.state.drop("interactions", interrupt)
                self._show(operation)
            operation.questions, operation.staged = {}, {}
        return step

    def answered_in_part(self, operation: OpenOperation) -> None:
        """Take the answered questions of a set that is open still out of the state."""
        with self.workspace.state.one_change():
            for interrupt in operation.staged:
                self.workspace.state.drop("interactions", interrupt)

    def end(self, operation: OpenOperation) -> None:
        """Make the end of a machine that somebody else ended known, and stop the task that drives it."""
        self._ended(operation)
        if operation.driven is not None:
            operation.driven.cancel()
        else:
            operation.release()

    def expire_due(self, operation: OpenOperation) -> None:
        """End a waiting operation whose time is over, where its timer has not come to it yet."""
        if operation.is_waiting and operation.due <= time.monotonic():
            self._expire(operation)

    # Steps

    def _perform(
        self, operation: OpenOperation, step: Send | Wait | Authorize | SignIn, observe: Observe
    ) -> Awaitable[Step]:
        match step:
            case Send():
                return self._send(operation, step, observe)
            case Wait():
                return self._wait(operation, step)
            case Authorize():
                assert operation.lease is not None  # noqa: S101 it was refused over its lease
                return self._sign_ins.begin(operation, operation.lease.connection, step)
            case SignIn(callback_url):
                return self._sign_ins.complete(operation, callback_url)
            case _:
                assert_never(step)

    @staticmethod
    async def _wait(operation: OpenOperation, wait: Wait) -> Step:
        """Return what comes after the wait, or sooner what follows from what the server told of the task."""
        step = operation.machine.told()
        with anyio.move_on_after(wait.seconds):
            while step is None:
                operation.told = anyio.Event()
                await operation.told.wait()
                step = operation.machine.told()
        return step or wait.then

    async def _send(self, operation: OpenOperation, send: Send, observe: Observe) -> Step:
        """Send one request over the operation's lease and feed the machine what arrives."""
        machine = operation.machine
        try:
            if operation.lease is None:
                operation.lease = await self.workspace.lease(machine.work.server, operation.id)
                operation.admit(operation.lease.server)
            machine.dispatching(send)
            if machine.task_id is not None:
                return await self._ask_about_task(operation, operation.lease, send)
            answer = await operation.lease.connection.request(
                send.method,
                send.params,
                input_schema=send.input_schema,
                on_progress=self._on_progress(operation, observe),
            )
            step = machine.arrived(answer)
            if machine.task_id is not None:
                operation.watch_task()
        except RequestFault as fault:
            return machine.faulted(fault)
        except ServerNotFound:
            # It was there when the operation was begun.
            return machine.fail(ServerChanged(machine.work.server))
        except Problem as problem:
            return machine.fail(problem)
        else:
            return step

    @staticmethod
    async def _ask_about_task(operation: OpenOperation, lease: Lease, send: Send) -> Step:
        """Send one request about the operation's task, without progress. MCP ext-tasks, Task Status Notifications."""
        with anyio.CancelScope() as operation.request:
            answer = await lease.connection.request(send.method, send.params, input_schema=send.input_schema)
            step = operation.machine.arrived(answer)
            operation.watch_task()
            return step
        raise AnswerLost("the server told how the task ended meanwhile")

    def _park(self, operation: OpenOperation, ask: Ask) -> Waiting:
        """Open one interrupt for each question and have the timer end the operation when nobody answers."""
        now, due = time.monotonic(), operation.deadline
        if operation.machine.is_proposed:
            due = min(due, now + self.settings.proposal_timeout_ms / 1000)
        if operation.machine.is_signing_in:
            due = min(due, self._sign_ins.due(operation))
        operation.due = due
        expires_at = rfc3339(datetime.now(UTC) + timedelta(seconds=due - now))
        for question in ask.questions:
            interrupt = new_interrupt(operation, question, expires_at)
            operation.questions[interrupt.id] = interrupt
            self._by_interrupt[interrupt.id] = operation
        self._wait_for_answers(operation)
        return Waiting(operation.id, operation.machine.work.kind, tuple(operation.questions.values()))

    def _park_again(self, operation: OpenOperation) -> None:
        """Open the question for a callback again, as it was; nothing happens where the operation ended meanwhile."""
        operation.machine.asked_again()
        asked = operation.sign_in.interrupt if operation.sign_in else None
        if asked is not None and not operation.machine.is_ended:
            operation.ask_again(asked)
            self._wait_for_answers(operation)

    def _wait_for_answers(self, operation: OpenOperation) -> None:
        seconds = operation.due - time.monotonic()
        operation.timer = asyncio.get_running_loop().call_later(seconds, self._expire, operation)
        operation.hold(self.workspace.in_use())
        operation.progress = None
        with self.workspace.state.one_change():
            self._show(operation)
            for interrupt in operation.questions.values():
                self.workspace.state.put(
                    "interactions", interrupt.id, interaction_entry(operation, interrupt)
                )
                if operation.machine.is_signing_in:
                    self._sign_ins.park(operation, interrupt)
        operation.wake()

    def _expire(self, operation: OpenOperation) -> None:
        """End an operation that nobody answered in time: by its own deadline, else by the question's."""
        operation.is_expired = True
        if operation.due >= operation.deadline:
            operation.machine.time_out(self.settings.request_timeout_ms)
        else:
            operation.machine.expire(operation.open_interrupts[0].id)
        self.end(operation)

    def _ended(self, operation: OpenOperation) -> None:
        """Take an ended operation off the board and keep its end. Idempotent."""
        if self._open.pop(operation.id, None) is None:
            return
        self._allowance.count -= 1
        operation.note_end(self._telemetry.measures)
        if operation.lease is not None and (task := operation.machine.task_id) is not None:
            self.task_cancels.send(operation.lease.connection, task)
        if operation.answers or operation.questions:
            self._drop_timer(operation)
            self._sign_ins.settle(operation)
            with self.workspace.state.one_change():
                for interrupt in operation.questions:
                    self.workspace.state.drop("interactions", interrupt)
                self.workspace.state.drop("operations", operation.id)
        else:
            self.workspace.state.drop("operations", operation.id)
        self._keep(operation)
        operation.wake()

    def _keep(self, operation: OpenOperation) -> None:
        """Remember the end of what a client can ask about again: tool calls, and whatever had a question."""
        machine, unanswered = operation.machine, _NONE
        if operation.answers or operation.questions:
            unanswered = frozenset(each.id for each in operation.open_interrupts)
            for interrupt in (*operation.answers, *unanswered):
                self._by_interrupt.pop(interrupt, None)
        ending = machine.ending
        if ending is None or not (machine.work.tool_call_id or operation.answers or unanswered):
            return
        self._kept.keep(
            SettledOperation(
                id=operation.id,
                kind=machine.work.kind,
                end=kept_end(ending),
                answers=operation.answers,
                unanswered=unanswered,
                is_expired=operation.is_expired,
                is_cancelled=machine.state is OperationState.CANCELLED,
                tool_call_id=machine.work.tool_call_id,
            )
        )

    def _require_room(self) -> None:
        if self._allowance.is_closed:
            raise ShuttingDown
        limit = self.settings.max_workspace_operations
        if len(self._open) >= limit:
            raise TooMany(
                "operations in this workspace", limit=limit, setting="PLURNK_MAX_WORKSPACE_OPERATIONS"
            )
        if self._allowance.count >= self._allowance.limit:
            raise TooMany("operations", limit=self._allowance.limit, setting="PLURNK_MAX_OPERATIONS")

    def _show(self, operation: OpenOperation) -> None:
        self.workspace.state.put("operations", operation.id, operation_entry(operation))

    def _show_progress(self, reported: Collection[str]) -> None:
        with self.workspace.state.one_change():
            for operation in filter(None, map(self._open.get, reported)):
                self._show(operation)

    def _on_progress(self, operation: OpenOperation, observe: Observe) -> Callable[[Progress], None] | None:
        """Return what shows progress to the run and the workspace; a completion asks for none."""
        work = operation.machine.work
        if not work.may_ask:
            return None

        def show(progress: Progress) -> None:
            operation.progress = progress.following(operation.progress)
            self._live_progress.reported(operation.id)
            observe(OperationProgressed(operation.id, work.tool_call_id, progress))

        return show

    @staticmethod
    def _drop_timer(operation: OpenOperation) -> None:
        if operation.timer is not None:
            operation.timer.cancel()
            operation.timer = None
