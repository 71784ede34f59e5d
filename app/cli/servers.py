"""The command ``list``: what is attached, and how each server is. SPEC §cli."""

from app.cli.client_command import client_command
from app.cli.session import Session


@client_command("workspace.mcp.list")
def list_servers(session: Session) -> None:
    """Show the servers of a workspace and how each one is."""
    result = session.act()
    session.end(result, lambda: session.screen.show_servers(session.workspace, result))
