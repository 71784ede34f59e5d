"""The commands that bring a definition: ``attach``, ``replace``. SPEC §cli, §definition."""

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from app.cli import completion
from app.cli.changes import end_change
from app.cli.client_command import client_command
from app.cli.definition import DefinitionWords, build
from app.cli.session import Session

NameWord: TypeAlias = Annotated[str | None, typer.Argument(metavar="NAME", help="What the server is called.")]
KnownName: TypeAlias = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The server.", autocompletion=completion.servers)
]
TargetWords: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="URL | -- COMMAND [ARGUMENT]…", help="Where it is, or how it is started."),
]
EnvOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--env", "-e", metavar="NAME[=VALUE]", help="Give the command a variable; NAME alone: the daemon's."
    ),
]
HeaderOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="'NAME: VALUE'", help="Send a header; VALUE may hold '${NAME}'."),
]
BearerOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--bearer", metavar="'${NAME}'", help="The variable that holds the bearer token."),
]
SignInOption: TypeAlias = Annotated[
    bool, typer.Option("--sign-in", help="A person signs in, in a browser on this machine: see authorize.")
]
CwdOption: TypeAlias = Annotated[
    str | None, typer.Option("--cwd", metavar="DIR", help="Where the command runs.")
]
ToolsOption: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tools", metavar="NAME[,NAME]…", help="Enable these tools only.")
]
ReadOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--read", metavar="NAME[,NAME]…", help="These tools only read: they run without acceptance."
    ),
]
FileOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--file", "-f", metavar="FILE", help="The definition as JSON; - for standard input."),
]


@client_command("workspace.mcp.attach")
def attach(
    session: Session,
    *,
    name: NameWord = None,
    target: TargetWords = None,
    env: EnvOption = None,
    header: HeaderOption = None,
    bearer: BearerOption = None,
    sign_in: SignInOption = False,
    cwd: CwdOption = None,
    tools: ToolsOption = None,
    read: ReadOption = None,
    file: FileOption = None,
) -> None:
    """Attach a server by its URL or by the command that starts it.

    References to the daemon's environment are written '${NAME}', in single quotes; no secret belongs on the
    command line.
    """
    words = DefinitionWords(
        name, target or (), env or (), header or (), bearer, cwd, tools, read, file, sign_in
    )
    _define(session, words, verb="attached")


@client_command("workspace.mcp.replace")
def replace(
    session: Session,
    *,
    name: KnownName = None,
    target: TargetWords = None,
    env: EnvOption = None,
    header: HeaderOption = None,
    bearer: BearerOption = None,
    sign_in: SignInOption = False,
    cwd: CwdOption = None,
    tools: ToolsOption = None,
    read: ReadOption = None,
    file: FileOption = None,
) -> None:
    """Give a server another definition; the old one serves meanwhile.

    The words are those of attach, and they are the whole new definition.
    """
    words = DefinitionWords(
        name, target or (), env or (), header or (), bearer, cwd, tools, read, file, sign_in
    )
    _define(session, words, verb="replaced")


def _define(session: Session, words: DefinitionWords, *, verb: str) -> None:
    definition = build(words, directory=Path.cwd(), read=_read)
    end_change(session, verb, str(definition.get("name", "")), session.act(server=definition))


def _read(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
