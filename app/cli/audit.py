"""The command ``audit``: who changed what, the newest first. SPEC §cli, §observe."""

from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from app.cli.client_command import client_command
from app.cli.members import objects_of, text_of
from app.cli.printable import one_line
from app.cli.screen import Screen
from app.cli.session import Session
from app.core.json_value import JsonObject

COLUMNS = {"at": "when", "actor": "token", "workspace": "workspace", "kind": "action", "server": "server"}


@client_command("audit")
def audit(
    session: Session,
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", metavar="NAME", help="Of this workspace alone.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", metavar="N", min=1, max=1000, help="How many rows at most.")
    ] = 20,
) -> None:
    """Show who changed what, the newest first; for the operator."""
    query = {"limit": str(limit)} | ({} if workspace is None else {"workspace": workspace})
    with session.client() as client:
        result = client.get("/v1/audit", query)
    session.end(result, lambda: show_audit(session.screen, result))


def show_audit(screen: Screen, result: JsonObject) -> None:
    """Show the rows as a table."""
    rows = objects_of(result.get("audit"))
    if not rows:
        screen.say("Nothing was changed yet.")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in (*COLUMNS.values(), "outcome"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        cells = [Text(_cell(row, member)) for member in COLUMNS]
        outcome = one_line(text_of(row, "outcome"))
        table.add_row(*cells, Text(outcome, style="green" if outcome == "ok" else "yellow"))
    screen.out.print(table)


def _cell(row: JsonObject, member: str) -> str:
    text = one_line(text_of(row, member))
    match member:
        case "at":
            return text[:19].replace("T", " ")
        case "kind":
            return text.removeprefix("workspace.mcp.")
        case _:
            return text or "-"
