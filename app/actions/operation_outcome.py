"""What an action that began an operation ended in, once the operation came to rest. SPEC §calls, §agui."""

from typing import assert_never

from app.actions.action import ActionOutcome, Done, Interrupted
from app.operations.board import Settled, Waiting


def action_outcome(rest: Settled | Waiting) -> ActionOutcome:
    """Return the action's outcome."""
    match rest:
        case Settled(result=result, encoded=encoded):
            return Done(result, encoded)
        case Waiting(operation=operation, interrupts=interrupts):
            return Interrupted(operation, interrupts)
        case _:
            assert_never(rest)
