"""The commands about what is attached: ``list``, ``attach``, ``detach``. SPEC §cli."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from app.cli.definition import DefinitionWords, build
from app.cli.exit_status import ExitStatus
from app.cli.session import (
    HomeOption,
    JsonOption,
    Session,
    TokenFileOption,
    UrlOption,
    WorkspaceOption,
    open_session,
    perform,
)
from app.core.json_value import JsonObject


def list_servers(
    context: typer.Context,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
    url: UrlOption = None,
    home: HomeOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Show the servers of a workspace and how each one is."""
    session = open_session(
        context,
        "workspace.mcp.list",
        workspace=workspace,
        as_json=as_json,
        url=url,
        home=home,
        token_file=token_file,
    )

    def work() -> None:
        result = session.act()
        session.end(result, lambda: session.screen.show_servers(workspace, result))

    perform(session, work)


def attach(
    context: typer.Context,
    *,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="What to call the server.")] = None,
    target: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL | -- COMMAND [ARGUMENT]…", help="Where it is, or how it is started."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            "-e",
            metavar="NAME[=VALUE]",
            help="Give the command a variable; NAME alone: the daemon's.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header", "-H", metavar="'NAME: VALUE'", help="Send a header; VALUE may hold '${NAME}'."
        ),
    ] = None,
    bearer: Annotated[
        str | None,
        typer.Option("--bearer", metavar="'${NAME}'", help="The variable that holds the bearer token."),
    ] = None,
    cwd: Annotated[str | None, typer.Option("--cwd", metavar="DIR", help="Where the command runs.")] = None,
    tools: Annotated[
        list[str] | None, typer.Option("--tools", metavar="NAME[,NAME]…", help="Enable these tools only.")
    ] = None,
    read: Annotated[
        list[str] | None,
        typer.Option(
            "--read", metavar="NAME[,NAME]…", help="These tools only read: they run without acceptance."
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="The definition as JSON; - for standard input."),
    ] = None,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
    url: UrlOption = None,
    home: HomeOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Attach a server by its URL or by the command that starts it.

    References to the daemon's environment are written '${NAME}', in single quotes; no secret belongs on the
    command line.
    """
    session = open_session(
        context,
        "workspace.mcp.attach",
        workspace=workspace,
        as_json=as_json,
        url=url,
        home=home,
        token_file=token_file,
    )
    words = DefinitionWords(name, target or (), env or (), header or (), bearer, cwd, tools, read, file)
    perform(session, lambda: _attach(session, words))


def _attach(session: Session, words: DefinitionWords) -> None:
    definition = build(words, directory=Path.cwd(), read=_read)
    result = session.act(server=definition)
    server = result.get("server")
    if isinstance(server, dict):
        session.end(result, lambda: session.screen.show_server("attached", session.workspace, server))
    name = str(definition.get("name", ""))
    session.end(result, lambda: session.screen.show_authorization(name, result), ExitStatus.QUESTION_OPEN)


def _read(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()


def detach(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The server to detach.")],
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
    url: UrlOption = None,
    home: HomeOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Detach a server; a service default stays hidden there."""
    session = open_session(
        context,
        "workspace.mcp.detach",
        workspace=workspace,
        as_json=as_json,
        url=url,
        home=home,
        token_file=token_file,
    )

    def work() -> None:
        result: JsonObject = session.act(name=name)
        session.end(result, lambda: session.screen.say(f"✓ detached {name} (workspace {workspace})"))

    perform(session, work)
