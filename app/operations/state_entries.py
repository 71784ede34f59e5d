"""What the AG-UI state shows of an operation and its questions: small, bounded, the same for everybody. SPEC §agui."""

from app.core.events import Interrupt
from app.core.json_value import JsonObject
from app.core.operation import Work
from app.core.operation_state import OperationState
from app.operations.open_operation import OpenOperation

MESSAGE_MAX = 200
"""Characters of a peer's text: every run of the workspace gets the whole state. An interrupt has its whole question."""


def operation_entry(operation: OpenOperation) -> JsonObject:
    """Return the entry of ``plurnk.operations``."""
    entry = begun_entry(operation.machine.work)
    if operation.is_waiting:
        entry["state"] = str(OperationState.INPUT_REQUIRED)
    if operation.progress is not None:
        progress = operation.progress.document()
        if operation.progress.message is not None:
            progress["message"] = _short(operation.progress.message)
        entry["progress"] = progress
    return entry


def interaction_entry(operation: OpenOperation, interrupt: Interrupt) -> JsonObject:
    """Return the entry of ``plurnk.interactions``."""
    entry: JsonObject = {"operation": operation.id}
    if operation.thread_id is not None:
        entry["threadId"] = operation.thread_id
    shown: JsonObject = {"message": _short(interrupt.message), "expiresAt": interrupt.expires_at}
    return entry | _subject(operation.machine.work) | shown


def begun_entry(work: Work) -> JsonObject:
    """Return the entry of an operation that has just begun."""
    return _subject(work) | {"state": str(OperationState.WORKING)}


def _subject(work: Work) -> JsonObject:
    subject: JsonObject = {"server": work.server}
    if work.tool is not None:
        subject["tool"] = work.tool
    return subject


def _short(message: str) -> str:
    return message if len(message) <= MESSAGE_MAX else f"{message[: MESSAGE_MAX - 1]}…"
