"""What an endpoint that does not offer our revision does speak, as far as its answer tells. SPEC §revision.

Pure. It decides no verdict, and asks nothing more: an older revision would have to be begun with ``initialize``,
which is never sent. The peer's words are looked at, and none but dates of revisions are repeated.
"""

import re
from dataclasses import dataclass
from typing import Final

from app.connections.wire import REVISION
from app.core.answers import HttpRefusal, RemoteError
from app.core.json_value import Json

REVISIONS_SHOWN: Final = 8
_MESSAGE_READ: Final = 4096
_REVISION = re.compile(r"(?<![\w-])20\d{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?![\w-])", re.ASCII)
_HANDSHAKE = re.compile(r"\bsession|\binitiali[sz]", re.IGNORECASE)

_BEGINS_OTHERWISE = "it waits for initialize or a session, with which earlier revisions begin"
_OF_EARLIER = "as servers of earlier revisions do"
_METHOD_UNKNOWN = f"it does not know the method, {_OF_EARLIER}"
_BY_CODE: Final = {
    -32601: _METHOD_UNKNOWN,
    -32602: f"it refuses the parameters of a method that it does not know, {_OF_EARLIER}",
}
_NO_POST = "nothing takes a POST there: a wrong path, or the HTTP+SSE transport of revision 2024-11-05"
_BY_STATUS: Final = {404: _NO_POST, 405: _NO_POST}


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a refusal of ``server/discover`` tells."""

    answered: str
    """Our words for what came and what it means."""
    revisions: tuple[str, ...] = ()
    """Those that the endpoint says it speaks."""


def spoken(answer: RemoteError | HttpRefusal) -> Spoken:
    """Return what an error answer tells of the endpoint."""
    match answer:
        case HttpRefusal(status=status):
            return Spoken(_joined(f"HTTP status {status}", _BY_STATUS.get(status)))
        case RemoteError(code=code):
            revisions = _offered(answer)
            meaning = None if revisions else _meaning(answer)
            return spoken_of(revisions, _joined(f"JSON-RPC error {code}", meaning))


def spoken_of(versions: list[str], came: str) -> Spoken:
    """Return what an endpoint tells that names the versions it supports."""
    known = tuple(dict.fromkeys(each for each in versions if _REVISION.fullmatch(each)))[:REVISIONS_SHOWN]
    return Spoken(f"{came}: it speaks {', '.join(known)}" if known else came, known)


def _offered(answer: RemoteError) -> list[str]:
    """Return the revisions in the error's ``data.supported``, else those that its message names beside ours."""
    supported: Json = answer.data.get("supported") if isinstance(answer.data, dict) else None
    if isinstance(supported, list):
        return [each for each in supported if isinstance(each, str)]
    return [each for each in _REVISION.findall(answer.message[:_MESSAGE_READ]) if each != REVISION]


def _meaning(answer: RemoteError) -> str | None:
    if _HANDSHAKE.search(answer.message[:_MESSAGE_READ]):
        return _BEGINS_OTHERWISE
    return _BY_CODE.get(answer.code)


def _joined(came: str, meaning: str | None) -> str:
    return came if meaning is None else f"{came}: {meaning}"
