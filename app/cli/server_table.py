"""The table of servers, as wide as the terminal. SPEC §cli."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.members import text_of
from app.cli.printable import one_line
from app.core.json_value import JsonObject

STATE_STYLES = {
    "connected": "green",
    "preparing": "yellow",
    "authorization-required": "yellow",
    "unavailable": "red",
}


def server_table(
    servers: Sequence[JsonObject], console: Console, *, columns: Sequence["Column"] | None = None
) -> Table:
    """Return the table with as many columns as the terminal has room for, unfolded."""
    columns = list(COLUMNS if columns is None else columns)
    endless = console.options.update(max_width=sys.maxsize)
    while True:
        table = _table_of(columns, servers)
        spare = [column for column in columns if column.is_spare]
        if not spare or console.measure(table, options=endless).maximum <= console.width:
            return table
        columns.remove(spare[-1])


def _table_of(columns: Sequence["Column"], servers: Sequence[JsonObject]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.heading, overflow="fold", justify="right" if column.is_number else "left")
    for server in servers:
        table.add_row(*(column.cell(server) for column in columns))
    return table


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table of servers."""

    heading: str
    cell: Callable[[JsonObject], Text]
    is_spare: bool = True
    """Whether it gives way, from the last to the first, where the terminal is too narrow for all."""
    is_number: bool = False


def _plain(member: str) -> Callable[[JsonObject], Text]:
    return lambda server: Text(one_line(text_of(server, member)) or "-")


def _name(server: JsonObject) -> Text:
    return Text(one_line(text_of(server, "name")), style="bold")


def _state(server: JsonObject) -> Text:
    state = one_line(text_of(server, "state"))
    return Text(state, style=STATE_STYLES.get(state, ""))


def _tools(server: JsonObject) -> Text:
    tools = server.get("tools")
    if isinstance(tools, list):
        return Text(str(len(tools)))
    return Text("-" if tools is None else str(tools))


def _implementation(server: JsonObject) -> Text:
    identity = server.get("server")
    if not isinstance(identity, dict):
        return Text("-")
    return Text(one_line(f"{text_of(identity, 'name')} {text_of(identity, 'version')}", limit=60))


COLUMNS = (
    Column("server", _name, is_spare=False),
    Column("state", _state, is_spare=False),
    Column("from", _plain("source")),
    Column("transport", _plain("transport")),
    Column("tools", _tools, is_spare=False, is_number=True),
    Column("resources", _plain("resources"), is_number=True),
    Column("prompts", _plain("prompts"), is_number=True),
    Column("implementation", _implementation),
)
LIVE_COLUMNS = COLUMNS[:-1]
"""What the live state knows of a server."""
