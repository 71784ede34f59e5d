"""The states of an operation and the only ways between them. SPEC §calls; shape after h11's tables.

The words are those of MCP Tasks.
"""

from enum import StrEnum
from types import MappingProxyType


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
