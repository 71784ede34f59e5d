"""The states of a connection and the only ways between them. SPEC §connection; shape after h11's tables."""

from enum import StrEnum
from types import MappingProxyType


class ConnectionState(StrEnum):
    """Where a connection stands."""

    PREPARING = "preparing"
    AUTHORIZATION_REQUIRED = "authorization-required"
    READY = "ready"
    RECOVERING = "recovering"
    RETIRING = "retiring"
    CLOSED = "closed"
    FAILED = "failed"


class ConnectionEvent(StrEnum):
    """What can happen to a connection."""

    PREPARED = "prepared"
    AUTHORIZATION_DEMANDED = "authorization_demanded"
    CALLBACK_ACCEPTED = "callback_accepted"
    LOST = "lost"
    RETIRED = "retired"
    CLOSED = "closed"


_S, _E = ConnectionState, ConnectionEvent
TRANSITIONS = MappingProxyType(
    {
        (_S.PREPARING, _E.PREPARED): _S.READY,
        (_S.PREPARING, _E.AUTHORIZATION_DEMANDED): _S.AUTHORIZATION_REQUIRED,
        (_S.PREPARING, _E.RETIRED): _S.RETIRING,
        (_S.PREPARING, _E.LOST): _S.FAILED,
        (_S.AUTHORIZATION_REQUIRED, _E.CALLBACK_ACCEPTED): _S.PREPARING,
        (_S.AUTHORIZATION_REQUIRED, _E.RETIRED): _S.RETIRING,
        (_S.AUTHORIZATION_REQUIRED, _E.LOST): _S.FAILED,
        (_S.READY, _E.RETIRED): _S.RETIRING,
        (_S.READY, _E.LOST): _S.RECOVERING,
        (_S.READY, _E.AUTHORIZATION_DEMANDED): _S.AUTHORIZATION_REQUIRED,
        (_S.RECOVERING, _E.PREPARED): _S.READY,
        (_S.RECOVERING, _E.LOST): _S.RECOVERING,
        (_S.RECOVERING, _E.AUTHORIZATION_DEMANDED): _S.AUTHORIZATION_REQUIRED,
        (_S.RECOVERING, _E.RETIRED): _S.RETIRING,
        (_S.RETIRING, _E.CLOSED): _S.CLOSED,
        (_S.RETIRING, _E.LOST): _S.FAILED,
        (_S.RETIRING, _E.RETIRED): _S.RETIRING,
        (_S.CLOSED, _E.RETIRED): _S.CLOSED,
        (_S.FAILED, _E.RETIRED): _S.FAILED,
    }
)


def advance(state: ConnectionState, event: ConnectionEvent) -> ConnectionState:
    """Return the state after the event.

    Raises:
        ValueError: the event cannot happen in this state; a bug of ours.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ValueError(f"{event} cannot happen to a connection that is {state}") from None
