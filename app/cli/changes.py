"""The commands that change an attached server by its name: ``detach``, ``reconnect``, ``restore``. SPEC §cli."""

from typing import Annotated, TypeAlias

import typer

from app.cli import completion
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

ServerName: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="The server.", autocompletion=completion.servers)
]
DefaultName: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="The server.", autocompletion=completion.defaults)
]


def detach(
    context: typer.Context,
    name: ServerName,
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


def reconnect(
    context: typer.Context,
    name: ServerName,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
    url: UrlOption = None,
    home: HomeOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Connect a server anew and list it afresh; its definition stays."""
    session = open_session(
        context,
        "workspace.mcp.reconnect",
        workspace=workspace,
        as_json=as_json,
        url=url,
        home=home,
        token_file=token_file,
    )
    perform(session, lambda: end_change(session, "reconnected", name, session.act(name=name)))


def restore(
    context: typer.Context,
    name: DefaultName,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
    url: UrlOption = None,
    home: HomeOption = None,
    token_file: TokenFileOption = None,
) -> None:
    """Drop the workspace's entry: the service default shows again."""
    session = open_session(
        context,
        "workspace.mcp.restore",
        workspace=workspace,
        as_json=as_json,
        url=url,
        home=home,
        token_file=token_file,
    )
    perform(session, lambda: end_change(session, "restored", name, session.act(name=name)))


def end_change(session: Session, verb: str, name: str, result: JsonObject) -> None:
    """Show the server that a change answered with, or where somebody must sign in before it is made, and exit.

    Raises:
        Exit: always.
    """
    server = result.get("server")
    if isinstance(server, dict):
        session.end(result, lambda: session.screen.show_server(verb, session.workspace, server))
    session.end(result, lambda: session.screen.show_authorization(name, result), ExitStatus.QUESTION_OPEN)
