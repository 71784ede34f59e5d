"""What every client command shares: its options, its channels, and how it ends. SPEC §cli."""

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import orjson
import typer

from app.cli.client import DaemonClient
from app.cli.exit_status import ExitStatus
from app.cli.failures import CommandFailure
from app.cli.printable import printable_json
from app.cli.safe_console import console
from app.cli.screen import Screen
from app.cli.target import TargetOptions, find
from app.core.json_value import JsonObject

WorkspaceOption: TypeAlias = Annotated[
    str, typer.Option("--workspace", "-w", metavar="NAME", help="The workspace to act on.")
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
UrlOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="The daemon's address, instead of the one it announced."),
]
HomeOption: TypeAlias = Annotated[
    Path | None, typer.Option("--home", metavar="DIR", help="The daemon's PLURNK_HOME.")
]
TokenFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file", metavar="FILE", help="A file that holds the token, instead of PLURNK_TOKEN."
    ),
]


@dataclass(frozen=True, slots=True)
class Session:
    """One invocation of one client command."""

    kind: str
    """The action's kind; ``--json`` repeats it."""
    workspace: str
    as_json: bool
    target: TargetOptions
    environment: Mapping[str, str]
    screen: Screen

    def client(self) -> DaemonClient:
        """Return a client of the daemon that is meant.

        Raises:
            DaemonUnreachable: there is none.
        """
        return DaemonClient(find(self.target, self.environment))

    def act(self, **params: object) -> JsonObject:
        """Return the result of this command's action.

        Raises:
            CommandFailure: there is none.
        """
        action: JsonObject = {"kind": self.kind, **params}  # pyright: ignore[reportAssignmentType] JSON by construction
        with self.client() as client, self.screen.err.status("waiting for the daemon"):
            return client.act(self.workspace, action)

    def end(self, result: JsonObject, show: Callable[[], None], status: ExitStatus = ExitStatus.OK) -> None:
        """Print the result and exit.

        Raises:
            Exit: always.
        """
        if self.as_json:
            print_json({"kind": self.kind, "ok": True, "result": result})
        else:
            show()
        raise typer.Exit(status)


def open_session(
    context: typer.Context,
    kind: str,
    *,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
    url: UrlOption = None,
    home: HomeOption = None,
    token_file: TokenFileOption = None,
) -> Session:
    """Return the session of one command; the options are those that every client command takes."""
    same = _flags(
        {
            "-w": None if workspace == "default" else workspace,
            "--url": url,
            "--home": home,
            "--token-file": token_file,
        }
    )
    screen = Screen(console(), console(stderr=True), same)
    return Session(
        kind, workspace, as_json, TargetOptions(url, home, token_file), environment_of(context), screen
    )


def environment_of(context: typer.Context) -> Mapping[str, str]:
    """Return the merged environment that the program was started with, else the process's own."""
    return context.obj if isinstance(context.obj, Mapping) else os.environ


def _flags(given: Mapping[str, str | Path | None]) -> str:
    """Return what the shell reads as these options, a space before each."""
    return "".join(f" {flag} {shlex.quote(str(value))}" for flag, value in given.items() if value is not None)


def perform(session: Session, work: Callable[[], None]) -> None:
    """Run a command's work and end as SPEC §cli says, whatever it raises.

    Raises:
        Exit: with the status of the result or of the failure.
    """
    try:
        work()
    except CommandFailure as failure:
        if session.as_json:
            print_json({"kind": session.kind, "ok": False, **failure.document()})
        else:
            session.screen.show_failure(failure)
        raise typer.Exit(failure.exit_status) from None
    except KeyboardInterrupt:
        session.screen.note("Interrupted.")
        raise typer.Exit(ExitStatus.INTERRUPTED) from None


def print_json(document: JsonObject) -> None:
    """Write one line of JSON to standard output, what a terminal would obey as its escape."""
    sys.stdout.buffer.write(printable_json(orjson.dumps(document).decode()).encode() + b"\n")
    sys.stdout.buffer.flush()
