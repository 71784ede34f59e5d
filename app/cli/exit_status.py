"""The exit statuses of the client commands. SPEC §cli."""

from enum import IntEnum

from app.core.json_value import Json


class ExitStatus(IntEnum):
    """What a script learns without reading a word."""

    OK = 0
    TOOL_SAID_NO = 1
    """The tool answered with ``isError``, or the person rejected the call."""
    USAGE = 2
    """The command line or the configuration is wrong; nothing was asked of a daemon."""
    PROBLEM_4XX = 3
    PROBLEM_5XX = 4
    UNREACHABLE = 5
    """No daemon answered, or it went away in mid-answer."""
    QUESTION_OPEN = 6
    """The operation waits for a person and nobody is there to answer."""
    INTERRUPTED = 130
    """Ctrl-C, as shells report it."""


def of_problem(status: Json) -> ExitStatus:
    """Return the exit status for a Problem's ``status``."""
    return ExitStatus.PROBLEM_5XX if isinstance(status, int) and status >= 500 else ExitStatus.PROBLEM_4XX
