"""Which Problem an error answer or a missing answer is, and what is known of the effect. SPEC §problems.

The peer's own words enter only as the bounded fact ``remote``.
"""

import orjson

from app.core.answers import (
    AnswerLost,
    AnswerMalformed,
    AnswerTooLarge,
    HttpRefusal,
    RemoteError,
    RequestFault,
    RequestNotSent,
)
from app.core.json_value import Json
from app.core.operation_problems import RemoteErrorAnswered, ResultTooLarge, ToolCallFailed
from app.core.problem import Outcome, Problem
from app.core.problems import CapabilityRequired, ServerUnavailable, Transport

CAPABILITY_MISSING = -32021
"""The request needs a client capability that it did not declare. MCP 2026-07-28 schema."""
REMOTE_DATA_MAX = 4096
"""Bytes of JSON that a peer's error data may have to be shown; more is left out whole, never cut."""


def refusal_problem(server: str, answer: RemoteError | HttpRefusal) -> Problem:
    """Return the Problem of an error that the peer answered with."""
    match answer:
        case RemoteError(code) if code == CAPABILITY_MISSING:
            return CapabilityRequired(server).with_outcome(Outcome.REJECTED)
        case RemoteError(code, message, data):
            return RemoteErrorAnswered(server, rpc_code=code, message=message, data=bounded(data))
        case HttpRefusal(problem=Problem() as cause):
            return cause.again().with_outcome(Outcome.REJECTED)
        case HttpRefusal(status):
            return RemoteErrorAnswered(server, http_status=status)


def fault_problem(server: str, transport: Transport, fault: RequestFault) -> Problem:
    """Return the Problem of a request that got no answer.

    An answer that is no JSON-RPC answer counts as lost: whoever wrote it (a proxy, a login page) says nothing
    of the effect.
    """
    match fault:
        case RequestNotSent():
            return ServerUnavailable(server, transport, fault.reason)
        case AnswerTooLarge(limit=limit):
            return ResultTooLarge(server, limit=limit, setting="PLURNK_MAX_MESSAGE")
        case AnswerMalformed():
            return ToolCallFailed(server, f"what came is no answer: {fault.reason}")
        case AnswerLost():
            return ToolCallFailed(server, fault.reason)
        case _:
            return ToolCallFailed(server, fault.reason)


def bounded(data: Json) -> Json:
    """Return the data where its JSON has at most ``REMOTE_DATA_MAX`` bytes, else None."""
    try:
        return data if data is not None and len(orjson.dumps(data)) <= REMOTE_DATA_MAX else None
    except orjson.JSONEncodeError:
        return None
