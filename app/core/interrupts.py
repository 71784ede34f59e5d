"""Answers to open questions: their form, whether they fit, and whether two are the same. SPEC §calls, §agui.

A question is an ``events.Interrupt``. What an answer makes the operation do is the operation's decision.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.core.events import Interrupt
from app.core.json_value import Json, JsonObject
from app.core.operation_problems import AnswerInvalid
from app.core.schemas import SchemaInvalid, validate


@dataclass(frozen=True, slots=True)
class ResumeEntry:
    """A client's answer to one interrupt. AG-UI 1.0 ``RunAgentInput.resume``."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: Json = None
    """None where it is absent; AG-UI makes no difference between an absent and a null payload."""
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody has to answer before an operation goes on; the board makes an interrupt of it."""

    reason: str
    message: str
    response_schema: JsonObject
    metadata: JsonObject
    """The value of ``metadata.plurnk``."""


def require_fit(interrupt: Interrupt, entry: ResumeEntry) -> None:
    """Return where the answer fits the question; a cancelled one always does, its payload is not looked at.

    Raises:
        AnswerInvalid: the payload breaks the question's schema.
    """
    if entry.status == "cancelled":
        return
    try:
        errors: Sequence[tuple[str, str]] = validate(interrupt.response_schema, entry.payload)
    except SchemaInvalid:
        errors = [("", "the question's own schema cannot be used; cancel it instead")]
    if errors:
        raise AnswerInvalid(interrupt.id, errors)


def fingerprint(entry: ResumeEntry) -> str:
    """Return a text that is the same for two answers exactly where they mean the same.

    Of the metadata only ``plurnk`` has a meaning. Unlike Python, JSON tells ``true``, ``1`` and ``1.0``
    apart. It is short and does not hold what a person answered: it is kept with the settled operation.

    Raises:
        AnswerInvalid: the payload is nested too deep to be an answer.
    """
    payload = None if entry.status == "cancelled" else entry.payload
    try:
        meant = json.dumps(
            [entry.status, payload, entry.metadata.get("plurnk")], sort_keys=True, separators=(",", ":")
        )
    except RecursionError:
        raise AnswerInvalid(entry.interrupt_id, [("", "it is nested too deep")]) from None
    return hashlib.sha256(meant.encode()).hexdigest()
