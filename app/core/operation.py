"""Operation: what one tool call, read or completion does next, whatever arrives. Sans-IO. SPEC §calls.

A driver performs the returned step and feeds back what arrived. Not here: its states (``operation_state``);
leases, timers, interrupts' ids and who may answer (``operations``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from app.core.answers import (
    Answer,
    AnswerLost,
    HttpRefusal,
    RemoteError,
    RequestFault,
    RequestNotSent,
    Result,
)
from app.core.elicitation import InputRequired, input_required
from app.core.interrupts import Question, ResumeEntry
from app.core.json_value import JsonObject
from app.core.operation_problems import (
    InputRoundsExceeded,
    InputUnsupported,
    InterruptExpired,
    OperationCancelled,
    OperationTimeout,
    ResultTooLarge,
    ToolCallFailed,
    ToolResultInvalid,
)
from app.core.operation_state import ENDED, OperationEvent, OperationState, advance
from app.core.problem import Outcome, Problem
from app.core.problems import AuthorizationRefused, Transport
from app.core.remote_errors import fault_problem, refusal_problem
from app.core.sign_in import SIGN_INS_MAX, callback_url, is_demanded, sign_in_question
from app.core.steps import Ask, Authorize, Completed, Ending, Failed, Send, SignIn, Step, Wait
from app.core.task import Task, TaskStatus
from app.core.value import value

ROUNDS_MAX = 10
"""How often one operation answers an ``input_required`` result."""
BACK_OFF_FIRST_S, BACK_OFF_MAX_S = 0.05, 1.0
"""The wait before a result that only has a state is answered; it doubles."""


UNKNOWN_TASK = -32602
"""What ``tasks/get`` answers for a task that is unknown or was dropped. MCP ext-tasks, Protocol Errors."""
BUSY = frozenset({429, 502, 503, 504})
"""HTTP refusals after which a poll is sent again."""


@value
class Work:
    """What one operation is about; fixed when it begins."""

    kind: str
    """The kind of the action that began it."""
    server: str
    transport: Transport
    request: Send
    interpret: Callable[[JsonObject], JsonObject]
    """Makes the action's result of a complete result of the peer; raises ToolResultInvalid."""
    max_result: int
    tool: str | None = None
    tool_call_id: str | None = None
    may_ask: bool = False
    """Whether the method may answer that it requires input. MCP 2026-07-28 basic/patterns/mrtr."""
    may_defer: bool = False
    """Whether the method may answer with a task. MCP ext-tasks, Supported Methods."""
    may_sign_in: bool = False
    """Whether a person can be asked to sign in where the server refuses a request for want of that."""
    consent: tuple[Question, ...] = ()
    """What must be accepted, all of it, before anything is sent."""
    refused: JsonObject | None = None
    """The action's result where consent is refused; set where that is asked for."""
    refusals: Mapping[int, Callable[[], Problem]] | None = None
    """JSON-RPC error codes that are a Problem of their own for this request."""


class Operation:
    """One operation from its begin to its one end."""

    def __init__(self, operation_id: str, work: Work) -> None:
        self.id = operation_id
        self.work = work
        self.state = OperationState.WORKING
        self.ending: Ending | None = None
        self.is_dispatched = False
        """Whether a request of it may have reached the peer."""
        self._required: InputRequired | None = None
        """What the open questions are for; None while consent is asked for."""
        self._sent: Send | None = None
        """What was sent last."""
        self._sign_ins = 0
        self.is_signing_in = False
        """Whether a person was asked to sign in and has not done so."""
        self._rounds = 0
        self._state_only = 0
        """How many results in a row asked for nothing but to be sent again."""
        self._task: Task | None = None
        """What the peer made of the request, from then on."""

    @property
    def is_ended(self) -> bool:
        """Whether its one end has happened."""
        return self.state in ENDED

    @property
    def is_proposed(self) -> bool:
        """Whether it waits for consent, and not for what the peer requires."""
        is_asking = self.state is OperationState.INPUT_REQUIRED
        return is_asking and self._required is None and not self.is_signing_in

    @property
    def task_id(self) -> str | None:
        """The task that the peer works on, as far as is known; after the end it is one to be cancelled."""
        return None if self._task is None or self._task.is_over else self._task.id

    def begin(self) -> Step:
        """Return the first step."""
        return self._ask(self.work.consent) if self.work.consent else self.work.request

    def answered(self, entries: Sequence[ResumeEntry]) -> Step:
        """Return the step after every open question was answered; the answers fit their questions."""
        self._move(OperationEvent.ANSWERED)
        if self.is_signing_in:
            if (callback := callback_url(entries[0])) is not None:
                return SignIn(callback)
            self.is_signing_in = False
            return self._told_end() or self.refused(self._unauthorized("nobody signed in"))
        if self._required is not None:
            required, self._required = self._required, None
            if self._task is not None:
                return self._told_end() or self._task.update(required, entries)
            return self._again(required, entries)
        if all(map(_consents, entries)):
            return self.work.request
        return self._end(OperationEvent.COMPLETED, Completed.of(self.work.refused or {}))

    def dispatching(self, request: Send) -> None:
        """Note that a request is about to be handed to the connection."""
        self.is_dispatched, self._sent = True, request

    def begun(self, url: str) -> Step:
        """Return the question for the callback of a sign-in that was begun at this URL."""
        about: JsonObject = {"operation": self.id, "server": self.work.server}
        if self.work.tool is not None:
            about["tool"] = self.work.tool
        try:
            question = sign_in_question(url, about)
        except Problem as problem:
            return self.refused(problem)
        self.is_signing_in = True
        return self._ask((question,))

    def signed_in(self) -> Step:
        """Return the refused request, which is sent again: the server did nothing of it."""
        self.is_signing_in = False
        if self._sent is None:
            raise ValueError("an operation that sent nothing was refused nothing")
        return self.ending or self._told_end() or self._sent

    def asked_again(self) -> None:
        """Wait for another callback: the one that was handed over used nothing up."""
        self._move(OperationEvent.ASKED)

    def refused(self, problem: Problem) -> Ending:
        """Return the end after a refusal that no sign-in mended."""
        self.is_signing_in = False
        return self.fail(problem.with_outcome(self._effect_of_refusal))

    def arrived(self, answer: Answer) -> Step:
        """Return the step after the peer's answer."""
        if self.ending is not None:
            return self.ending
        task = self._task
        if task is not None and (told := self._told_end()) is not None:
            return told
        if isinstance(answer, Result):
            return self._result(answer) if task is None else self._task_answered(task, answer)
        if self.work.may_sign_in and is_demanded(answer):
            return self._demanded(answer)
        if task is not None:
            return self._task_answered(task, answer)
        if isinstance(answer, RemoteError) and self.work.refusals and answer.code in self.work.refusals:
            return self.fail(self.work.refusals[answer.code]())
        return self.fail(refusal_problem(self.work.server, answer))

    def faulted(self, fault: RequestFault) -> Step:
        """Return the step after a request that got no answer; only a poll of a task is sent again."""
        if (told := self._told_end()) is not None:
            return told
        if self._task is not None and self.ending is None and isinstance(fault, RequestNotSent | AnswerLost):
            again = self._task.missed(was_sent=not isinstance(fault, RequestNotSent))
            if again is not None:
                return again
        problem = fault_problem(self.work.server, self.work.transport, fault)
        if (self._rounds or self._task) and problem.outcome is Outcome.NOT_SENT:
            # This request was not sent; what the peer did after the ones before it, nobody knows.
            problem = problem.with_outcome(Outcome.UNKNOWN)
        return self.fail(problem)

    def fail(self, problem: Problem) -> Ending:
        """Return the end after ending in this Problem, or the end that was there before."""
        return self._end(OperationEvent.FAILED, Failed(problem))

    def cancel(self, by: Literal["workspace.mcp.cancel", "disconnect", "shutdown", "server"]) -> Ending:
        """Return the end after being cancelled, or the end that was there before."""
        return self._end(
            OperationEvent.CANCELLED, Failed(OperationCancelled(self.id, by=by, outcome=self._known_effect))
        )

    def time_out(self, timeout_ms: int) -> Ending:
        """Return the end after the deadline passed, or the end that was there before."""
        return self.fail(
            OperationTimeout(self.work.server, timeout_ms=timeout_ms, outcome=self._known_effect)
        )

    def expire(self, interrupt: str) -> Ending:
        """Return the end after nobody answered this question in time, or the end that was there before."""
        return self.fail(InterruptExpired(interrupt).with_outcome(self._known_effect))

    @property
    def _effect_of_refusal(self) -> Outcome:
        """What is known of the effect after a refused request; one about a task says nothing of the call itself."""
        return Outcome.REJECTED if self._task is None else Outcome.UNKNOWN

    @property
    def _known_effect(self) -> Outcome:
        if self.is_signing_in:
            return self._effect_of_refusal
        return Outcome.UNKNOWN if self.is_dispatched else Outcome.NOT_SENT

    def _demanded(self, answer: Answer) -> Step:
        """Return the begin of a sign-in, or the end where enough people were asked."""
        if self._sign_ins >= SIGN_INS_MAX:
            return self.refused(self._unauthorized(f"{SIGN_INS_MAX} sign-ins did not give what it demands"))
        self._sign_ins += 1
        return Authorize(answer.bearer_challenge if isinstance(answer, HttpRefusal) else None)

    def _unauthorized(self, reason: str) -> Problem:
        return AuthorizationRefused(self.work.server, reason)

    def _result(self, result: Result) -> Step:
        server = self.work.server
        if result.is_larger_than(self.work.max_result):
            return self.fail(ResultTooLarge(server, limit=self.work.max_result, setting="PLURNK_MAX_RESULT"))
        match result.value.get("resultType"):
            case None | "complete":
                return self._completed(result)
            case "input_required" if self.work.may_ask:
                return self._input_required(result)
            case "task" if self.work.may_defer:
                return self._deferred(result)
            case _:
                return self.fail(ToolResultInvalid(server, "its resultType is unknown"))

    def _completed(self, result: Result) -> Ending:
        try:
            shown = self.work.interpret(result.value)
        except Problem as problem:
            return self.fail(problem)
        return self._end(OperationEvent.COMPLETED, Completed.of(shown))

    def _input_required(self, result: Result) -> Step:
        """Return the questions of the result, all at once, or the wait after which it is answered by its state."""
        if self.ending is not None:
            return self.ending
        if self._rounds >= ROUNDS_MAX:
            return self.fail(InputRoundsExceeded(self.work.server, rounds=ROUNDS_MAX))
        self._rounds += 1
        try:
            required = input_required(
                result.value, operation=self.id, server=self.work.server, tool=self.work.tool
            )
        except Problem as problem:
            return self.fail(problem)
        if required.requests:
            self._required, self._state_only = required, 0
            return self._ask(tuple(request.question for request in required.requests))
        seconds = min(BACK_OFF_MAX_S, BACK_OFF_FIRST_S * 2**self._state_only)
        self._state_only += 1
        return Wait(seconds, self._again(required, ()))

    def _deferred(self, result: Result) -> Step:
        """Return the wait before the first poll of the task that the peer made of the request."""
        try:
            self._task = Task(result.value, self.work.server)
            return self._task.begun(result.value)
        except Problem as problem:
            return self.fail(problem)

    def _task_answered(self, task: Task, answer: Answer) -> Step:
        """Return the step after the answer to a poll or an update; an error says nothing of the call itself."""
        match answer:
            case Result() if task.is_updating:
                return task.poll()
            case Result():
                return self.observed(task.newest(answer))
            case RemoteError(code) if code == UNKNOWN_TASK and not task.is_updating:
                task.is_over = True
                return self.fail(
                    ToolCallFailed(self.work.server, "its task is unknown there, or has expired")
                )
            case HttpRefusal(status) if status in BUSY and (again := task.missed(was_sent=True)):
                return again
            case RemoteError() | HttpRefusal():
                return self.fail(refusal_problem(self.work.server, answer).with_outcome(Outcome.UNKNOWN))

    def tell(self, state: Result) -> bool:
        """Keep a state of its task that the server told of; return whether the task is over, and no request needed."""
        if self._task is None or self.is_ended:
            return False
        self._task.tell(state)
        return self._task.is_over

    def told(self) -> Step | None:
        """Return the step after what the server told of its task, where that counts now; while it works."""
        state = None if self._task is None or self.is_ended else self._task.take_told()
        return None if state is None else self.observed(state)

    def _told_end(self) -> Step | None:
        return self.told() if self._task is not None and self._task.is_over else None

    def observed(self, result: Result) -> Step:
        """Return the step after a state of its task, polled or told, while the operation works."""
        if self._task is None or self.ending is not None:
            raise ValueError("an operation without a task, or that ended, observes none")
        if result.is_larger_than(self.work.max_result):
            return self.fail(
                ResultTooLarge(self.work.server, limit=self.work.max_result, setting="PLURNK_MAX_RESULT")
            )
        try:
            return self._task_step(self._task, result)
        except InputUnsupported as problem:
            # The task was at work already.
            return self.fail(problem.with_outcome(Outcome.UNKNOWN))
        except Problem as problem:
            return self.fail(problem)

    def _task_step(self, task: Task, result: Result) -> Step:
        """Return the step after a state of the task.

        Raises:
            ToolResultInvalid: the state breaks the protocol.
            InputUnsupported: it asks for what this host cannot give.
        """
        match task.observe(result.value):
            case TaskStatus.WORKING:
                return task.poll()
            case TaskStatus.INPUT_REQUIRED:
                return self._task_asks(task, result.value)
            case TaskStatus.COMPLETED:
                return self._completed(Result(task.result(result.value), result.size))
            case TaskStatus.FAILED:
                return self.fail(refusal_problem(self.work.server, task.error(result.value)))
            case TaskStatus.CANCELLED:
                return self.cancel("server")

    def _task_asks(self, task: Task, value: JsonObject) -> Step:
        """Return the questions that were not put before, all at once, or the next poll where there is none."""
        fresh = task.fresh_requests(value)
        if not fresh:
            return task.poll()
        if self._rounds >= ROUNDS_MAX:
            return self.fail(InputRoundsExceeded(self.work.server, rounds=ROUNDS_MAX))
        self._rounds += 1
        self._required = required = input_required(
            {"inputRequests": fresh}, operation=self.id, server=self.work.server, tool=self.work.tool
        )
        return self._ask(tuple(request.question for request in required.requests))

    def _again(self, required: InputRequired, entries: Sequence[ResumeEntry]) -> Send:
        request = self.work.request
        return replace(request, params=required.retry(request.params, entries))

    def _ask(self, questions: tuple[Question, ...]) -> Step:
        self._move(OperationEvent.ASKED)
        return self.ending or Ask(questions)

    def _end(self, event: OperationEvent, ending: Ending) -> Ending:
        self._move(event)
        if self.ending is None:
            self.ending = ending
        return self.ending

    def _move(self, event: OperationEvent) -> None:
        self.state = advance(self.state, event)


def _consents(entry: ResumeEntry) -> bool:
    """Return whether the answer accepts a proposal. Anything but a plain accept is no consent."""
    payload = entry.payload
    return entry.status == "resolved" and isinstance(payload, dict) and payload.get("decision") == "accept"
