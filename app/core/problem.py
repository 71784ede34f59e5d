"""What a Problem is: an exception that knows its RFC 9457 document. SPEC §problems.

The kinds of Problem live in ``problems``; this module holds what they share.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar

from app.core.json_value import Json, JsonObject

TYPE_PREFIX = "https://problems.plurnk.dev/mcp"
DETAIL_MAX = 4096
"""Characters of the sentence: whatever a client or peer named in it, a Problem stays small."""
NAME_MAX = 256
"""Characters of a name, a pointer or a message that somebody else chose."""


class Stage(StrEnum):
    """The part of the daemon a Problem speaks for; it is one segment of ``type``."""

    MANAGEMENT = "management"
    OPERATION = "operation"


class Outcome(StrEnum):
    """What is known of the effect of an operation that ended in a Problem."""

    NOT_SENT = "not-sent"
    REJECTED = "rejected"
    EXECUTED = "executed"
    UNKNOWN = "unknown"


def shortened(text: str, limit: int = NAME_MAX) -> str:
    """Return the text, its end replaced by ``…`` where it is too long to be repeated."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def listed(errors: Sequence[tuple[str, str]]) -> list[Json]:
    """Return the fact ``errors``: where something is wrong, by JSON Pointer, and what."""
    return [{"pointer": shortened(pointer), "message": shortened(message)} for pointer, message in errors]


def first_of(errors: Sequence[tuple[str, str]]) -> str:
    """Return the first few errors in words, for the sentence."""
    return "; ".join(f"{shortened(pointer) or '/'}: {shortened(message)}" for pointer, message in errors[:5])


class Problem(Exception):
    """Something went wrong that a caller is told about, with a slug that SPEC.md lists.

    Subclasses take typed facts and write the sentence; nobody else composes ``detail``. A fact that is None is
    left out of the document. No expanded reference, token or remote authorization text may enter one.
    """

    code: ClassVar[str]
    title: ClassVar[str]
    status: ClassVar[int]
    """The HTTP status, as RFC 9457 ``status``."""
    retryable: ClassVar[bool] = False
    outcome: Outcome = Outcome.NOT_SENT
    """What is known of the effect; shown for operations only."""
    stage: Stage | None = None
    """The part of the daemon it speaks for, whichever action met it; None leaves that to the action."""

    def __init__(self, detail: str, **facts: Json) -> None:
        self.detail = shortened(detail, DETAIL_MAX)
        super().__init__(self.detail)
        self.facts: JsonObject = {name: value for name, value in facts.items() if value is not None}

    def document(self, stage: Stage = Stage.MANAGEMENT) -> JsonObject:
        """Return the RFC 9457 problem details object, with our members after the standard ones.

        ``stage`` is the one of the action that met it.
        """
        stage = self.stage or stage
        document: JsonObject = {
            "type": f"{TYPE_PREFIX}/{stage}/{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "retryable": self.retryable,
            "stage": str(stage),
            **self.facts,
        }
        if stage is Stage.OPERATION:
            document["outcome"] = str(self.outcome)
        return document

    def again(self) -> "Problem":
        """Return an equal Problem to raise anew, which holds no traceback and no other exception alive."""
        copy = type(self).__new__(type(self), *self.args)
        copy.args = self.args
        copy.__dict__.update(self.__dict__)
        return copy

    def with_outcome(self, outcome: Outcome) -> "Problem":
        """Return this Problem after noting what is known of the effect."""
        self.outcome = outcome
        return self
