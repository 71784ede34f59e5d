"""The client commands as one Typer application; the daemon's own are mounted beside them. SPEC §cli."""

import typer

from app.cli.call import call
from app.cli.demo import demo
from app.cli.servers import attach, detach, list_servers

app = typer.Typer(
    name="plurnk-mcpd",
    help="Host MCP servers for many workspaces.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def register(target: typer.Typer) -> None:
    """Add every client command to an application."""
    target.command("list")(list_servers)
    target.command("attach")(attach)
    target.command("detach")(detach)
    target.command("call")(call)
    target.command("demo")(demo)


register(app)
