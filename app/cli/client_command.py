"""What makes a client command of a function: its session, and the options that all of them take. SPEC §cli."""

import inspect
from collections.abc import Callable
from functools import wraps
from types import MappingProxyType
from typing import Any, Final

import typer

from app.cli.session import open_session, perform

_SHARED: Final = MappingProxyType(
    {
        name: parameter
        for name, parameter in inspect.signature(open_session).parameters.items()
        if name not in {"context", "kind"}
    }
)
"""The options of every client command, as ``open_session`` declares them."""
_CONTEXT: Final = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)


def client_command(kind: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return what makes a command for Typer of work that is done in a session of this kind: its first parameter.

    The command takes what the work takes besides it, then the shared options but those that the work takes
    itself; it ends as SPEC §cli says, whatever the work raises.
    """

    def made(work: Callable[..., None]) -> Callable[..., None]:
        own = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in list(inspect.signature(work).parameters.values())[1:]
        ]
        shared = [parameter for name, parameter in _SHARED.items() if name not in {each.name for each in own}]

        @wraps(work)
        def command(*, context: typer.Context, **words: Any) -> None:
            options = {parameter.name: words.pop(parameter.name) for parameter in shared}
            session = open_session(context, kind, **options)
            perform(session, lambda: work(session, **words))

        command.__signature__ = inspect.Signature([_CONTEXT, *own, *shared])  # pyright: ignore[reportAttributeAccessIssue] as inspect looks for it
        return command

    return made
