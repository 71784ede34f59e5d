"""The commands that change an attached server by its name: ``detach``, ``reconnect``, ``restore``. SPEC §cli."""

from typing import Annotated, TypeAlias

import typer

from app.cli import completion
from app.cli.client_command import client_command
from app.cli.exit_status import ExitStatus
from app.cli.session import Session
from app.core.json_value import JsonObject

ServerName: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="The server.", autocompletion=completion.servers)
]
DefaultName: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="The server.", autocompletion=completion.defaults)
]


@client_command("workspace.mcp.detach")
def detach(session: Session, name: ServerName) -> None:
    """Detach a server; a service default stays hidden there."""
    result: JsonObject = session.act(name=name)
    session.end(result, lambda: session.screen.say(f"✓ detached {name} (workspace {session.workspace})"))


@client_command("workspace.mcp.reconnect")
def reconnect(session: Session, name: ServerName) -> None:
    """Connect a server anew and list it afresh; its definition stays."""
    end_change(session, "reconnected", name, session.act(name=name))


@client_command("workspace.mcp.restore")
def restore(session: Session, name: DefaultName) -> None:
    """Drop the workspace's entry: the service default shows again."""
    end_change(session, "restored", name, session.act(name=name))


def end_change(session: Session, verb: str, name: str, result: JsonObject) -> None:
    """Show the server that a change answered with, or where somebody must sign in before it is made, and exit.

    Raises:
        Exit: always.
    """
    server = result.get("server")
    if isinstance(server, dict):
        session.end(result, lambda: session.screen.show_server(verb, session.workspace, server))
    session.end(result, lambda: session.screen.show_authorization(name, result), ExitStatus.QUESTION_OPEN)
