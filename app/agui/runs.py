"""One AG-UI run: what it was asked for, performed in the request's own task, told as events. SPEC §agui.

Every run that began ends with exactly one terminal event. RUN_ERROR is for a failure of ours and for a resume
that was not consumed: it alone leaves the client's open interrupts as they are. AG-UI 1.0 interrupts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, assert_never

from app.actions.action import Done, Host, Interrupted
from app.actions.perform import perform, resume, stage_of
from app.agui import envelopes
from app.agui.events import EVENT_MAX, run_started
from app.agui.interrupts import is_unconsumed, resumed_kind, waiting_on_thread
from app.agui.narration import Narration
from app.agui.run_input import RunInput
from app.agui.state_view import StateView
from app.agui.stream import Event, EventStream
from app.core.door_problems import InputMalformed
from app.core.events import Interrupt
from app.core.json_value import JsonObject
from app.core.operation_problems import OperationCancelled, ResultTooLarge
from app.core.principal import Principal
from app.core.problem import Outcome, Problem, Stage
from app.core.problems import ActionRequired, Internal, ParameterInvalid, ShuttingDown
from app.doors.asgi import Receive, Send
from app.doors.presence import Presence
from app.doors.problem_response import logged_internal
from app.doors.streams import Ending, OpenStreams
from app.workspaces.workspace import Workspace

ENVELOPE_MARGIN = 16 * 1024
"""Bytes that an event needs around the value of ``plurnk.action.result``, the longest ids included."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The action ended as asked."""

    result: JsonObject
    encoded: bytes | None
    """The result as JSON, where it has been written already."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The action ended in a Problem."""

    problem: Problem
    is_error: bool = False
    """Whether the run has to end in RUN_ERROR."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Somebody has to answer before it goes on."""

    interrupts: Sequence[Interrupt]


RunEnd: TypeAlias = Answered | Refused | Waits


class AguiRun:
    """One run of one client in one workspace."""

    def __init__(self, host: Host, principal: Principal, workspace: Workspace, asked: RunInput) -> None:
        self._host = host
        self._principal = principal
        self._workspace = workspace
        self._asked = asked
        self._kind, self._stage = self._asked_for()

    async def answer(
        self, streams: OpenStreams, receive: Receive, send: Send, presence: Presence | None = None
    ) -> None:
        """Stream the whole run; nothing was sent where it raises.

        Raises:
            TooMany: too many streams are open.
            ShuttingDown: the daemon takes up nothing.
            InputMalformed: the client's state does not fit into one event.
        """
        shields = self._stage is not Stage.OPERATION
        with streams.stream(), streams.attend(receive, presence, shields=shields) as attention:
            view = StateView(self._workspace.state, self._asked.state)
            gone = partial(attention.stop, Ending.CLIENT_GONE)
            stream = EventStream(send, view, on_stall=gone)
            attention.beside(stream.write)
            narration = Narration(stream)
            # No await between the snapshot and the subscription: no change may be missing from both, or be in
            # both.
            stream.emit(self._started(), _fitting(view.snapshot()))
            unfollow = view.follow()
            try:
                end: RunEnd | None = None
                with attention.work():
                    end = await self._performed(narration)
                if attention.ending is not Ending.CLIENT_GONE:
                    narration.close()
                    stream.catch_up()
                    await stream.finish(*self._encoded(end or _stopped(view)))
            finally:
                unfollow()
                stream.abandon()

    def _asked_for(self) -> tuple[str | None, Stage]:
        """Return the kind that the run's result names, and the stage its Problems speak for."""
        action = self._asked.action
        if action is None and self._asked.resume:
            board = self._host.boards.of(self._workspace)
            return resumed_kind(board, self._asked.resume), Stage.OPERATION
        kind = action.get("kind") if isinstance(action, dict) else None
        return (kind[:128], stage_of(kind)) if isinstance(kind, str) else (None, Stage.MANAGEMENT)

    async def _performed(self, narration: Narration) -> RunEnd:
        """Return how the work ended, whatever happened but cancellation."""
        try:
            return await self._worked(narration)
        except Problem as problem:
            return Refused(problem, is_error=isinstance(problem, Internal) or self._left_open(problem))
        except Exception as failure:  # noqa: BLE001 the border of a run: it ends with one terminal event
            return Refused(logged_internal(failure), is_error=True)

    def _left_open(self, problem: Problem) -> bool:
        """Return whether the run's resume was not consumed: the client's interrupts are as open as before."""
        return bool(self._asked.resume) and (self._asked.action is not None or is_unconsumed(problem))

    async def _worked(self, narration: Narration) -> RunEnd:
        asked, name = self._asked, self._workspace.name
        if asked.resume and asked.action is not None:
            raise ParameterInvalid("resume", "a run takes either an action or a resume, not both")
        if asked.resume:
            _, outcome = await resume(
                self._host,
                self._principal,
                name,
                asked.resume,
                observe=narration.observe,
                thread_id=asked.thread_id,
            )
        elif asked.action is not None:
            outcome = await perform(
                self._host,
                self._principal,
                name,
                asked.action,
                observe=narration.observe,
                thread_id=asked.thread_id,
            )
        else:
            return self._reminded()
        match outcome:
            case Done(result, encoded):
                return Answered(result, encoded)
            case Interrupted(_, interrupts):
                return Waits(interrupts)
            case _:
                assert_never(outcome)

    def _reminded(self) -> Waits:
        """Return what waits on the thread, for a run that asks for nothing.

        Raises:
            ActionRequired: nothing waits.
        """
        interrupts = waiting_on_thread(self._host.boards.of(self._workspace), self._asked.thread_id)
        if not interrupts:
            raise ActionRequired
        return Waits(interrupts)

    def _started(self) -> bytes:
        return run_started(self._asked.thread_id, self._asked.run_id, self._asked.parent_run_id)

    def _encoded(self, end: RunEnd) -> tuple[Event, ...]:
        """Return the last events; a result that cannot be written is a failure of ours, not a missing end."""
        try:
            return self._last(end)
        except (TypeError, ValueError) as failure:
            return self._last(Refused(logged_internal(failure), is_error=True))

    def _last(self, end: RunEnd) -> tuple[Event, ...]:
        """Return the last events of the run, the terminal one at the end."""
        ids = self._asked.thread_id, self._asked.run_id
        match end:
            case Waits(interrupts):
                interrupted = envelopes.run_interrupted(*ids, interrupts)
                return (interrupted,) if len(interrupted) <= EVENT_MAX else self._last(self._too_large())
            case Answered(result, encoded):
                value = envelopes.result_value(self._kind or "", result, encoded)
                if sum(map(len, value)) + ENVELOPE_MARGIN > EVENT_MAX:
                    return self._last(self._too_large())
                return envelopes.custom(value), envelopes.run_finished(*ids, value, "success")
            case Refused(problem, is_error):
                value = envelopes.problem_value(self._kind, problem, self._stage)
                if is_error:
                    return envelopes.custom(value), envelopes.run_error(problem, self._stage)
                is_stopped = isinstance(problem, OperationCancelled | ShuttingDown)
                outcome = "cancelled" if is_stopped else "success"
                return envelopes.custom(value), envelopes.run_finished(*ids, value, outcome)
            case _:
                assert_never(end)

    @staticmethod
    def _too_large() -> Refused:
        return Refused(ResultTooLarge(None, limit=EVENT_MAX, setting=None))


def _stopped(view: StateView) -> Refused:
    """Return the end of a run that shutdown stopped before it had one."""
    if view.operation is None:
        return Refused(ShuttingDown(was_begun=True))
    if not view.is_call:
        return Refused(ShuttingDown(was_begun=True).with_outcome(Outcome.UNKNOWN))
    return Refused(OperationCancelled(view.operation, by="shutdown", outcome=Outcome.UNKNOWN))


def _fitting(snapshot: bytes) -> bytes:
    if len(snapshot) > EVENT_MAX:
        raise InputMalformed([("/state", f"it does not fit into one event of {EVENT_MAX} bytes")])
    return snapshot
