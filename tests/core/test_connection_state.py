"""Every pair of state and event is decided by the table, or raises."""

import itertools

import pytest

from app.core.connection_state import TRANSITIONS, ConnectionEvent, ConnectionState, advance

pytestmark = pytest.mark.spec("connection")


@pytest.mark.parametrize("state, event", list(itertools.product(ConnectionState, ConnectionEvent)), ids=str)
def test_every_pair_goes_where_the_table_says_or_is_a_bug(
    state: ConnectionState, event: ConnectionEvent
) -> None:
    if (state, event) in TRANSITIONS:
        assert advance(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(ValueError, match=f"{event} cannot happen"):
            advance(state, event)


def test_retiring_is_possible_in_every_state_and_the_end_is_the_end() -> None:
    for state in ConnectionState:
        assert (state, ConnectionEvent.RETIRED) in TRANSITIONS
    for ended in (ConnectionState.CLOSED, ConnectionState.FAILED):
        assert {after for (before, _), after in TRANSITIONS.items() if before is ended} == {ended}
