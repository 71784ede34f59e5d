"""OpenOperation: one operation between its begin and its end, with what it holds meanwhile. SPEC §calls.

Data only: the driver of ``open_operations`` runs it, the timer ends it, the board takes its answers.
"""

import asyncio
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from os import urandom
from typing import Final

import anyio
import orjson

from app.concurrency import Stop
from app.core.answers import Progress, Result
from app.core.events import Interrupt
from app.core.interrupts import Question, ResumeEntry, fingerprint, require_fit
from app.core.json_value import JsonObject
from app.core.measures import Measures
from app.core.operation import Operation, Work
from app.core.operation_problems import InterruptConflict
from app.core.operation_state import OperationState
from app.core.snapshot import ServerSnapshot
from app.core.telemetry import Span, Tracer
from app.ports import AuthorizationAttempt, Connection
from app.workspaces.pending import ParkedQuestion
from app.workspaces.workspace import Lease

Admit = Callable[[ServerSnapshot[Connection]], None]
"""Returns where the server is still what the operation was begun for; else raises a Problem."""


@dataclass(slots=True, eq=False)
class PendingSignIn:
    """The sign-in that an operation waits for, or waited for last."""

    attempt: AuthorizationAttempt
    connection: Connection
    """Which is granted something by it."""
    seen: int
    """How many sign-ins the connection was granted something by before."""
    interrupt: Interrupt | None = None
    """The question for its callback, once that is put."""
    parked: ParkedQuestion | None = None
    """Set where it is listed as pending."""


@dataclass(slots=True, eq=False)
class OpenOperation:
    """One operation in flight or waiting; mutable, owned by ``OpenOperations``."""

    id: str
    machine: Operation
    thread_id: str | None
    """The AG-UI thread it was begun on."""
    deadline: float
    """For the whole of it, on the monotonic clock."""
    admit: Admit
    span: Span | None = None
    """The whole of it; what an answer sets going later is a part of it too."""
    driven: Stop | None = None
    """Set while a request's task drives it."""
    lease: Lease | None = None
    """From the first request to the end; a proposal has none."""
    request: anyio.CancelScope | None = None
    """Of the last request that was sent about its task."""
    forget_task: Callable[[], None] | None = None
    """Ends the watch over its task; set while the server may tell of it."""
    told: anyio.Event | None = None
    """Set when the server told of the task; made by whoever waits for that."""
    progress: Progress | None = None
    """What its server reported last; nothing while it waits for a person."""
    held: ExitStack | None = None
    """Keeps the workspace from being idle once it waits; until then the run that drives it does."""
    questions: dict[str, Interrupt] = field(default_factory=dict)
    """The interrupts of the set that is open, in order, the answered ones among them."""
    staged: dict[str, ResumeEntry] = field(default_factory=dict)
    """Answers to some of them, waiting for the others."""
    answers: dict[str, str] = field(default_factory=dict)
    """Every answer that was ever taken, by interrupt, as its fingerprint."""
    sign_in: PendingSignIn | None = None
    due: float = 0.0
    """When the open questions expire, on the monotonic clock."""
    timer: asyncio.TimerHandle | None = None
    """Ends it when nobody answered in time."""
    is_expired: bool = False
    rested: anyio.Event | None = None
    """Set when it ends or waits again; made by whoever waits for that."""

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a person."""
        return self.machine.state is OperationState.INPUT_REQUIRED

    @property
    def open_interrupts(self) -> tuple[Interrupt, ...]:
        """The interrupts that nobody answered yet, in order."""
        return tuple(each for key, each in self.questions.items() if key not in self.staged)

    @property
    def answered_set(self) -> list[ResumeEntry]:
        """The answers to the whole open set, in the order it was asked; every one was given."""
        return [self.staged[interrupt] for interrupt in self.questions]

    def new_answers(self, given: Mapping[str, ResumeEntry]) -> dict[str, ResumeEntry]:
        """Return the answers that were not taken before; all of ``given`` are to this operation's questions.

        Raises:
            InterruptConflict: one was taken before, differently.
            AnswerInvalid: a new one does not fit its question.
        """
        fresh: dict[str, ResumeEntry] = {}
        for interrupt, entry in given.items():
            known, answer = self.answers.get(interrupt), fingerprint(entry)
            if known is None:
                require_fit(self.questions[interrupt], entry)
                fresh[interrupt] = entry
            elif known != answer:
                raise InterruptConflict(interrupt)
        return fresh

    def stage(self, fresh: Mapping[str, ResumeEntry]) -> None:
        """Take answers that ``new_answers`` returned."""
        self.staged.update(fresh)
        self.answers.update({interrupt: fingerprint(entry) for interrupt, entry in fresh.items()})

    def ask_again(self, interrupt: Interrupt) -> None:
        """Have the one question open again whose answer was taken."""
        self.questions, self.staged = {interrupt.id: interrupt}, {}
        self.answers.pop(interrupt.id, None)

    def watch_task(self) -> None:
        """Hear what the server tells of the task, where there is one and it is not watched already."""
        if self.lease is not None and self.forget_task is None and (task := self.machine.task_id) is not None:
            self.forget_task = self.lease.connection.watch_task(task, self._hear)

    def _hear(self, state: JsonObject) -> None:
        """Take what the server tells of the task; whoever waits goes on, and for nothing where the task is over."""
        is_over = self.machine.tell(Result(state, len(orjson.dumps(state))))
        if self.told is not None:
            self.told.set()
        if is_over and self.request is not None:
            self.request.cancel()

    def hold(self, use: AbstractContextManager[None]) -> None:
        """Enter the use of the workspace and keep it until ``release``; nothing happens the second time."""
        if self.held is None:
            self.held = ExitStack()
            self.held.enter_context(use)

    def note_end(self, measures: Measures) -> None:
        """Count how it ended, and end its span; called once."""
        ending = str(self.machine.state)
        measures.operations.add(self.machine.work.kind, ending)
        if self.span is not None:
            self.span.end(ending)

    def wake(self) -> None:
        """Have whoever waits for it look where it stands."""
        if self.rested is not None:
            self.rested.set()
            self.rested = None

    def release(self) -> None:
        """Let go of the task, the lease and the workspace. Idempotent."""
        if self.forget_task is not None:
            self.forget_task()
            self.forget_task = None
        if self.lease is not None:
            self.lease.release()
            self.lease = None
        if self.held is not None:
            self.held.close()


def _unguessable_ids() -> Generator[str]:
    """Yield ids of 128 random bits each, for which the system is asked once for very many."""
    while True:
        bits = urandom(16 * 256)
        for start in range(0, len(bits), 16):
            yield f"op-{bits[start : start + 16].hex()}"


new_operation_id: Final[Callable[[], str]] = partial(next, _unguessable_ids())
"""Returns an unguessable operation id."""


def operation_span(tracer: Tracer, work: Work) -> Span | None:
    """Return the span of a new operation, which says no argument, no result and no URI."""
    attributes = {"plurnk.server": work.server, "plurnk.kind": work.kind, "gen_ai.tool.name": work.tool}
    return tracer.begin("operation", "internal", attributes)


def new_interrupt(operation: OpenOperation, question: Question, expires_at: str) -> Interrupt:
    """Return the interrupt that puts this question, under an unguessable id."""
    return Interrupt(
        id=f"int-{secrets.token_urlsafe(24)}",
        operation=operation.id,
        reason=question.reason,
        message=question.message,
        expires_at=expires_at,
        response_schema=question.response_schema,
        metadata=question.metadata,
        tool_call_id=operation.machine.work.tool_call_id,
        thread_id=operation.thread_id,
    )
