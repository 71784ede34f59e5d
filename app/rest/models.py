"""The one body of REST that is no action: the answer to an interrupt. SPEC §agui."""

from typing import Any, Literal

from pydantic import ValidationError

from app.actions.action import Params
from app.core.door_problems import InputMalformed
from app.core.interrupts import ResumeEntry
from app.core.json_value import Json

FAULTS_MAX = 20
"""Faults that one Problem names."""


class InterruptAnswer(Params):
    """An AG-UI resume entry without its id, which the path has; null is as good as absent."""

    status: Literal["resolved", "cancelled"]
    payload: Any = None
    """What the interrupt's ``responseSchema`` asks for."""
    metadata: dict[str, Any] | None = None


def parse_answer(interrupt: str, body: Json) -> ResumeEntry:
    """Return the answer to the interrupt.

    Raises:
        InputMalformed: the body is no answer.
    """
    try:
        given = InterruptAnswer.model_validate(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)[:FAULTS_MAX]
        raise InputMalformed(
            [("".join(f"/{part}" for part in fault["loc"]), fault["msg"].lower()) for fault in faults]
        ) from None
    return ResumeEntry(
        interrupt_id=interrupt, status=given.status, payload=given.payload, metadata=given.metadata or {}
    )
