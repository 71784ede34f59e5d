"""How a call to the board can return, and how a settled operation repeats its end. SPEC §calls."""

from dataclasses import field
from typing import TypeAlias

from app.core.events import Interrupt
from app.core.json_value import JsonObject
from app.core.operation import Completed, Ending, Failed
from app.core.problem import Stage
from app.core.value import value


@value
class Settled:
    """The operation ended with this result of its action."""

    operation: str
    kind: str
    """The kind of the action that began the operation."""
    result: JsonObject
    encoded: bytes | None = field(default=None, compare=False, repr=False)
    """The result as JSON, where it has been written already."""


@value
class Waiting:
    """The operation waits for a person."""

    operation: str
    kind: str
    interrupts: tuple[Interrupt, ...]
    """Every open one, at least one."""


@value
class StillOpen:
    """The answer was taken; others of the operation are needed before it goes on."""

    operation: str
    kind: str
    interrupts: tuple[Interrupt, ...]
    """The ones that are open still."""


@value
class Working:
    """The operation runs for another client, or goes on."""

    operation: str
    kind: str


Rest: TypeAlias = Settled | Waiting


def settled(operation: str, kind: str, ending: Ending) -> Settled:
    """Return the operation's result, the same each time, whichever action asks for it.

    Raises:
        Problem: the one it ended in, each time a fresh copy.
    """
    match ending:
        case Completed(result, encoded):
            return Settled(operation, kind, result, encoded)
        case Failed(problem):
            told = problem.again()
            told.stage = Stage.OPERATION
            raise told from None
