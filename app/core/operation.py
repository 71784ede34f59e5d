"""Operation: what one tool call, read or completion does next, whatever arrives. Sans-IO. SPEC §calls.

States and their only ways are a table, after h11's; the words are those of MCP Tasks. A driver performs the
returned step and feeds back what arrived. Not here: leases, timers, interrupts' ids and who may answer
(``operations``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, TypeAlias

from app.core.answers import Answer, HttpRefusal, RemoteError, RequestFault, Result
from app.core.elicitation import InputRequired, input_required
from app.core.interrupts import Question, ResumeEntry
from app.core.json_value import JsonObject
from app.core.operation_problems import (
    InputRoundsExceeded,
    InterruptExpired,
    OperationCancelled,
    OperationTimeout,
    ResultTooLarge,
    ToolResultInvalid,
)
from app.core.problem import Outcome, Problem
from app.core.problems import Transport
from app.core.remote_errors import fault_problem, refusal_problem

ROUNDS_MAX = 10
"""How often one operation answers an ``input_required`` result."""
BACK_OFF_FIRST_S, BACK_OFF_MAX_S = 0.05, 1.0
"""The wait before a result that only has a state is answered; it doubles."""


class OperationState(StrEnum):
    """Where an operation stands."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class OperationEvent(StrEnum):
    """What can happen to an operation."""

    ASKED = "asked"
    ANSWERED = "answered"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_S, _E = OperationState, OperationEvent
ENDED = frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED})
TRANSITIONS = MappingProxyType(
    {
        (_S.WORKING, _E.ASKED): _S.INPUT_REQUIRED,
        (_S.WORKING, _E.COMPLETED): _S.COMPLETED,
        (_S.WORKING, _E.FAILED): _S.FAILED,
        (_S.WORKING, _E.CANCELLED): _S.CANCELLED,
        (_S.INPUT_REQUIRED, _E.ANSWERED): _S.WORKING,
        (_S.INPUT_REQUIRED, _E.FAILED): _S.FAILED,
        (_S.INPUT_REQUIRED, _E.CANCELLED): _S.CANCELLED,
        # What arrives after the end is dropped: the first end stands.
        **{(ended, event): ended for ended in ENDED for event in _E if event is not _E.ANSWERED},
    }
)


def advance(state: OperationState, event: OperationEvent) -> OperationState:
    """Return the state after the event.

    Raises:
        ValueError: the event cannot happen in this state; a bug of ours.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ValueError(f"{event} cannot happen to an operation that is {state}") from None


@dataclass(frozen=True, slots=True)
class Send:
    """The next step: send this request to the server and feed what arrives to ``arrived``."""

    method: str
    params: JsonObject
    input_schema: bytes | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """The next step: put these questions, all at once, and feed all answers to ``answered``."""

    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """The next step: wait so long, then perform the step in it."""

    seconds: float
    then: Send


@dataclass(frozen=True, slots=True)
class Completed:
    """The end: the result of the action."""

    result: JsonObject
    size: int = 0
    """Bytes of the peer's message that it was made of."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The end: the Problem of the action."""

    problem: Problem


Ending: TypeAlias = Completed | Failed
Step: TypeAlias = Send | Ask | Wait | Ending


@dataclass(frozen=True, slots=True)
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
    consent: tuple[Question, ...] = ()
    """What must be accepted, all of it, before anything is sent."""
    refused: JsonObject = field(default_factory=dict)
    """The action's result where consent is refused."""
    refusals: Mapping[int, Callable[[], Problem]] = field(default_factory=dict)
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
        self._rounds = 0
        self._state_only = 0
        """How many results in a row asked for nothing but to be sent again."""

    @property
    def is_ended(self) -> bool:
        """Whether its one end has happened."""
        return self.state in ENDED

    @property
    def is_proposed(self) -> bool:
        """Whether it waits for consent, and not for what the peer requires."""
        return self.state is OperationState.INPUT_REQUIRED and self._required is None

    def begin(self) -> Step:
        """Return the first step."""
        return self._ask(self.work.consent) if self.work.consent else self.work.request

    def answered(self, entries: Sequence[ResumeEntry]) -> Step:
        """Return the step after every open question was answered; the answers fit their questions."""
        self._move(OperationEvent.ANSWERED)
        if self._required is not None:
            required, self._required = self._required, None
            return self._again(required, entries)
        if all(map(_consents, entries)):
            return self.work.request
        return self._end(OperationEvent.COMPLETED, Completed(self.work.refused))

    def dispatching(self) -> None:
        """Note that a request is about to be handed to the connection."""
        self.is_dispatched = True

    def arrived(self, answer: Answer) -> Step:
        """Return the step after the peer's answer."""
        match answer:
            case Result():
                return self._result(answer)
            case RemoteError(code) if code in self.work.refusals:
                return self.fail(self.work.refusals[code]())
            case RemoteError() | HttpRefusal():
                return self.fail(refusal_problem(self.work.server, answer))

    def faulted(self, fault: RequestFault) -> Step:
        """Return the step after a request that got no answer; it is never sent again."""
        problem = fault_problem(self.work.server, self.work.transport, fault)
        if self._rounds and problem.outcome is Outcome.NOT_SENT:
            # This round was not sent; what the peer did in the ones before it, nobody knows.
            problem = problem.with_outcome(Outcome.UNKNOWN)
        return self.fail(problem)

    def fail(self, problem: Problem) -> Ending:
        """Return the end after ending in this Problem, or the end that was there before."""
        return self._end(OperationEvent.FAILED, Failed(problem))

    def cancel(self, by: Literal["workspace.mcp.cancel", "disconnect", "shutdown"]) -> Ending:
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
    def _known_effect(self) -> Outcome:
        return Outcome.UNKNOWN if self.is_dispatched else Outcome.NOT_SENT

    def _result(self, result: Result) -> Step:
        server = self.work.server
        if result.size > self.work.max_result:
            return self.fail(ResultTooLarge(server, limit=self.work.max_result, setting="PLURNK_MAX_RESULT"))
        match result.value.get("resultType", "complete"):
            case "complete":
                return self._completed(result)
            case "input_required" if self.work.may_ask:
                return self._input_required(result)
            case _:
                return self.fail(ToolResultInvalid(server, "its resultType is unknown"))

    def _completed(self, result: Result) -> Ending:
        try:
            shown = self.work.interpret(result.value)
        except Problem as problem:
            return self.fail(problem)
        return self._end(OperationEvent.COMPLETED, Completed(shown, result.size))

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
