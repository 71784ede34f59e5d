"""Open questions as a run sees them: which it ends with again, what an answer is for. SPEC §agui, §calls.

Whether an answer fits and what it makes the operation do is the board's.
"""

from collections.abc import Sequence

from app.core.events import Interrupt
from app.core.interrupts import ResumeEntry
from app.core.oauth_problems import OAuthCallbackInvalid
from app.core.operation_problems import AnswerInvalid, ResumeIncomplete
from app.core.problem import Problem
from app.operations.board import Board

CALL = "workspace.mcp.call"


def waiting_on_thread(board: Board, thread_id: str) -> tuple[Interrupt, ...]:
    """Return the open interrupts of the oldest waiting operation that was begun on the thread.

    One operation's only: the client has to answer all that a run ends with in one resume, and a resume covers
    one operation. The next one shows when this one is answered.
    """
    interrupts = board.open_interrupts(thread_id)
    return tuple(each for each in interrupts if each.operation == interrupts[0].operation)


def resumed_kind(board: Board, entries: Sequence[ResumeEntry]) -> str:
    """Return the kind of action that the answers are for; a call where nobody knows any more."""
    kinds = (board.kind_of(entry.interrupt_id) for entry in entries)
    return next((kind for kind in kinds if kind is not None), CALL)


def is_unconsumed(problem: Problem) -> bool:
    """Return whether a resume that ended so left every interrupt as open as it was. SPEC §problems."""
    is_asked_again = isinstance(problem, OAuthCallbackInvalid) and not problem.is_over
    return is_asked_again or isinstance(problem, ResumeIncomplete | AnswerInvalid)
