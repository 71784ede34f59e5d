"""The command ``cancel``: ends an operation that runs or waits for an answer. SPEC §cli, §calls."""

from typing import Annotated

import typer

from app.cli.client_command import client_command
from app.cli.session import Session


@client_command("workspace.mcp.cancel")
def cancel(
    session: Session,
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="Its id, as watch shows it.")],
) -> None:
    """Cancel an operation that runs or waits for an answer."""
    result = session.act(operation=operation)
    session.end(
        result, lambda: session.screen.say(f"✓ cancelled {operation} (workspace {session.workspace})")
    )
