"""The client commands as one Typer application; the daemon's own are mounted beside them. SPEC §cli."""

from collections.abc import Callable, Mapping
from importlib import metadata
from types import MappingProxyType
from typing import Annotated

import typer

from app.cli.attach import attach, replace
from app.cli.audit import audit
from app.cli.authorize import authorize
from app.cli.call import call
from app.cli.cancel import cancel
from app.cli.catalog import complete, read, tools
from app.cli.changes import detach, reconnect, restore
from app.cli.demo import demo
from app.cli.servers import list_servers
from app.cli.watch import watch

COMMANDS: Mapping[str, Callable[..., None]] = MappingProxyType(
    {
        "list": list_servers,
        "attach": attach,
        "replace": replace,
        "detach": detach,
        "reconnect": reconnect,
        "restore": restore,
        "authorize": authorize,
        "tools": tools,
        "call": call,
        "read": read,
        "complete": complete,
        "watch": watch,
        "cancel": cancel,
        "audit": audit,
        "demo": demo,
    }
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plurnk-mcpd {metadata.version('plurnk-mcpd')}")
        raise typer.Exit


app = typer.Typer(
    name="plurnk-mcpd",
    help="Host MCP servers for many workspaces.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def program(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit."),
    ] = False,
) -> None:
    """Host MCP servers for many workspaces."""


def register(target: typer.Typer) -> None:
    """Add every client command to an application."""
    for name, command in COMMANDS.items():
        target.command(name)(command)


register(app)
