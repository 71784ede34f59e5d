"""The states of an operation: every pair of state and event is decided."""

from itertools import product

import pytest

from app.core.operation_state import ENDED, TRANSITIONS, OperationEvent, OperationState, advance

S, E = OperationState, OperationEvent
WAYS = {
    (S.WORKING, E.ASKED): S.INPUT_REQUIRED,
    (S.WORKING, E.COMPLETED): S.COMPLETED,
    (S.WORKING, E.FAILED): S.FAILED,
    (S.WORKING, E.CANCELLED): S.CANCELLED,
    (S.INPUT_REQUIRED, E.ANSWERED): S.WORKING,
    (S.INPUT_REQUIRED, E.FAILED): S.FAILED,
    (S.INPUT_REQUIRED, E.CANCELLED): S.CANCELLED,
}


@pytest.mark.spec("calls")
@pytest.mark.parametrize(("state", "event"), list(product(S, E)))
def test_every_pair_of_state_and_event_is_decided(state: OperationState, event: OperationEvent) -> None:
    if state in ENDED and event is not E.ANSWERED:
        assert advance(state, event) is state
    elif (state, event) in WAYS:
        assert advance(state, event) is WAYS[state, event]
    else:
        assert (state, event) not in TRANSITIONS
        with pytest.raises(ValueError, match="cannot happen"):
            advance(state, event)
