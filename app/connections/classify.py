"""Which Problem of a preparation an answer, or none, is. SPEC §revision.

Pure. Our own failures never borrow a peer's code, and no remote text enters a Problem.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, Literal, TypeAlias, TypeGuard

from app.connections.spoken import Spoken, spoken, spoken_of
from app.connections.transport import AddressNotSent, Lost
from app.connections.wire import REVISION
from app.core.answers import (
    Answer,
    AnswerMalformed,
    AnswerTooLarge,
    HttpRefusal,
    RemoteError,
    RequestFault,
    Result,
)
from app.core.json_value import Json, JsonObject
from app.core.problem import Problem
from app.core.problems import (
    AddressRefused,
    AuthorizationRefused,
    CapabilityRequired,
    CatalogInvalid,
    ProtocolRevisionUnsupported,
    ServerUnavailable,
)
from app.core.remote_errors import CAPABILITY_MISSING

HEADER_MISMATCH: Final = -32020
REVISION_UNSUPPORTED: Final = -32022
METHOD_NOT_FOUND: Final = -32601


class Retry(Enum):
    """The server has our revision after all: the same request once more."""

    ONCE = auto()


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom a Problem is about."""

    server: str
    transport: Literal["stdio", "http"]

    def unavailable(self, lost: Lost, *, http_status: int | None = None) -> ServerUnavailable:
        """Return the Problem of a peer that cannot be reached or ended, with what is known of it."""
        return ServerUnavailable(
            self.server,
            self.transport,
            lost.reason,
            http_status=http_status,
            exit_status=lost.exit_status,
            signal=lost.signal,
            stderr=lost.stderr,
        )

    def unsupported(self, told: Spoken) -> ProtocolRevisionUnsupported:
        """Return the Problem of an endpoint that does not speak our revision, and what it does speak."""
        return ProtocolRevisionUnsupported(
            self.server, self.transport, answered=told.answered, revisions=told.revisions
        )


Verdict: TypeAlias = JsonObject | Retry


def discovered(answer: Answer, peer: Peer) -> Verdict:
    """Return the DiscoverResult of a server that speaks our revision, or that it is to be asked once more.

    Raises:
        Problem: by the first matching row of SPEC §revision.
    """
    match answer:
        case Result(value=value):
            return _discover_result(value, peer)
        case RemoteError() | HttpRefusal():
            if problem := refused(answer, peer):
                raise problem
            if (
                isinstance(answer, RemoteError)
                and answer.code == REVISION_UNSUPPORTED
                and _lists_revision(answer.data)
            ):
                return Retry.ONCE
            raise peer.unsupported(spoken(answer))


def refused(answer: RemoteError | HttpRefusal, peer: Peer) -> Problem | None:
    """Return the Problem that an error answer is whatever was asked, or None where that decides."""
    if isinstance(answer, HttpRefusal) and answer.problem is not None:
        return answer.problem.again()
    status = answer.status if isinstance(answer, HttpRefusal) else answer.http_status
    if status is not None and (300 <= status < 400 or status in {408, 429} or status >= 500):
        return peer.unavailable(Lost(f"it answered with HTTP status {status}"), http_status=status)
    if isinstance(answer, RemoteError) and answer.code == HEADER_MISMATCH:
        reason = f"it says that headers and body differ (JSON-RPC error {HEADER_MISMATCH})"
        return peer.unavailable(Lost(reason), http_status=status)
    if status == 401:
        reason = "it demands an authorization that the definition does not give (HTTP status 401)"
        return AuthorizationRefused(peer.server, reason, http_status=status)
    if status == 403:
        return AuthorizationRefused(
            peer.server, "it forbids the request (HTTP status 403)", http_status=status
        )
    if isinstance(answer, RemoteError) and answer.code == CAPABILITY_MISSING:
        return CapabilityRequired(peer.server)
    return None


def discover_fault(fault: RequestFault, lost: Lost, peer: Peer) -> Problem:
    """Return the Problem of a ``server/discover`` that got no answer."""
    if isinstance(fault, AnswerMalformed):
        return peer.unsupported(Spoken("an answer that is not JSON-RPC, as of a program that speaks no MCP"))
    return _fault(fault, lost, peer)


def list_fault(method: str, fault: RequestFault, lost: Lost, peer: Peer) -> Problem:
    """Return the Problem of a list request that got no answer."""
    if isinstance(fault, AnswerMalformed):
        detail = f"what came for {method} is no answer: {fault.reason}"
        return CatalogInvalid(peer.server, "answer-malformed", detail)
    return _fault(fault, lost, peer)


def list_refused(method: str, answer: RemoteError | HttpRefusal, peer: Peer) -> Problem:
    """Return the Problem of a list that the server declared and does not give."""
    if problem := refused(answer, peer):
        return problem
    if isinstance(answer, HttpRefusal):
        said, reason = f"HTTP status {answer.status}", "list-refused"
    else:
        said = f"JSON-RPC error {answer.code}"
        reason = "list-missing" if answer.code == METHOD_NOT_FOUND else "list-refused"
    return CatalogInvalid(peer.server, reason, f"it declares {method} and answers it with {said}")


def _fault(fault: RequestFault, lost: Lost, peer: Peer) -> Problem:
    """Return the Problem of a request that got no answer, whatever was asked."""
    match fault:
        case AddressNotSent():
            return AddressRefused(server=peer.server)
        case AnswerTooLarge(limit=limit):
            detail = f"an answer is larger than {limit} bytes (PLURNK_MAX_MESSAGE)"
            return CatalogInvalid(peer.server, "message-too-large", detail)
        case _:
            return peer.unavailable(lost)


def _discover_result(value: JsonObject, peer: Peer) -> JsonObject:
    """Return the value where it is a DiscoverResult with our revision, judged as the peer sent it.

    Raises:
        ProtocolRevisionUnsupported: it is not.
    """
    versions = value.get("supportedVersions")
    if not is_complete(value) or not _is_texts(versions) or not isinstance(value.get("capabilities"), dict):
        raise peer.unsupported(Spoken("a result that is no DiscoverResult"))
    if REVISION not in versions:
        raise peer.unsupported(spoken_of(versions, "a DiscoverResult without it"))
    return value


def is_complete(value: JsonObject) -> bool:
    """Return whether a result is final; an absent ``resultType`` says so too. MCP 2026-07-28 basic/index."""
    return value.get("resultType") in (None, "complete")


def _is_texts(value: Json) -> TypeGuard[list[str]]:
    """Return whether the value is an array of strings."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _lists_revision(data: Json) -> bool:
    """Return whether the data of ``-32022`` lists our revision."""
    supported = data.get("supported") if isinstance(data, dict) else None
    return isinstance(supported, list) and REVISION in supported
