"""The ways in which a client command can end without its result; each knows its exit status. SPEC §cli.

``screen`` shows them to a person, ``envelope`` to a program. None carries a token or an expanded value.
"""

from collections.abc import Sequence

from typing_extensions import override

from app.cli.exit_status import ExitStatus, of_problem
from app.core.json_value import Json, JsonObject


class CommandFailure(Exception):
    """A command ended without its result."""

    exit_status: ExitStatus

    def document(self) -> JsonObject:
        """Return what ``--json`` shows beside ``kind`` and ``ok``."""
        raise NotImplementedError


class ProblemAnswer(CommandFailure):
    """The daemon answered with a Problem."""

    def __init__(self, problem: JsonObject) -> None:
        super().__init__(str(problem.get("detail", "")))
        self.problem = problem
        self.exit_status = of_problem(problem.get("status"))

    @override
    def document(self) -> JsonObject:
        """Return the Problem as the daemon sent it."""
        return {"problem": self.problem}


class QuestionOpen(CommandFailure):
    """The operation waits for a person, and nobody here can answer."""

    exit_status = ExitStatus.QUESTION_OPEN

    def __init__(self, workspace: str, operation: str, interrupts: Sequence[JsonObject]) -> None:
        super().__init__(operation)
        self.workspace = workspace
        self.operation = operation
        self.interrupts = list(interrupts)

    @override
    def document(self) -> JsonObject:
        """Return the operation and its open questions."""
        interrupts: list[Json] = [*self.interrupts]
        return {"operation": self.operation, "interrupts": interrupts}


class SignInOpen(CommandFailure):
    """A server waits for a sign-in, and nobody came back from it."""

    exit_status = ExitStatus.QUESTION_OPEN

    def __init__(self, workspace: str, name: str, authorization: JsonObject) -> None:
        super().__init__(name)
        self.workspace = workspace
        self.name = name
        self.authorization = authorization

    @override
    def document(self) -> JsonObject:
        """Return where the sign-in is."""
        return {"name": self.name, "authorization": self.authorization}


class LocalFailure(CommandFailure):
    """Something that no daemon said: a sentence of what happened and one of what to do."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy

    @override
    def document(self) -> JsonObject:
        """Return the two sentences; there is no Problem, because none was received."""
        return {"error": {"detail": self.what, "next": self.remedy}}


class UsageFault(LocalFailure):
    """The command line asks for something impossible."""

    exit_status = ExitStatus.USAGE


class DaemonUnreachable(LocalFailure):
    """No daemon answered where one was looked for."""

    exit_status = ExitStatus.UNREACHABLE


class AnswerLost(LocalFailure):
    """The daemon took the request and went away before it answered."""

    exit_status = ExitStatus.UNREACHABLE


class RunCancelled(LocalFailure):
    """The daemon ended the run as cancelled."""

    exit_status = ExitStatus.PROBLEM_5XX
