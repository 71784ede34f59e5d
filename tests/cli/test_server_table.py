"""The table of servers fits the terminal. SPEC §cli."""

import io

import pytest
from rich.console import Console

from app.cli.server_table import server_table
from app.core.json_value import JsonObject

CONNECTED: JsonObject = {
    "name": "time",
    "source": "workspace",
    "transport": "stdio",
    "state": "connected",
    "server": {"name": "mcp-time", "version": "2026.8"},
    "tools": ["get_current_time", "convert_time"],
    "resources": 0,
    "prompts": 1,
    "withheld": [{"name": "odd\x1b[2J", "reason": "no schema"}],
}


def shown(server: JsonObject, width: int) -> list[str]:
    written = io.StringIO()
    console = Console(file=written, width=width)
    console.print(server_table([server], console))
    return written.getvalue().splitlines()


@pytest.mark.spec("cli")
@pytest.mark.parametrize("width, columns", [(30, 3), (40, 4), (60, 5), (80, 7), (100, 8)])
def test_the_table_fits_the_terminal_with_whole_words(width: int, columns: int) -> None:
    lines = shown(CONNECTED, width)
    assert max(len(line) for line in lines) <= width
    [heading, _, row] = [line.split() for line in lines if line.strip()]
    assert len(heading) == columns
    assert row[:2] == ["time", "connected"]


@pytest.mark.spec("cli")
def test_a_long_name_takes_the_room_of_lesser_columns() -> None:
    name = "a-name-of-fifty-characters".ljust(50, "-")
    [heading, _, row] = [line.split() for line in shown({**CONNECTED, "name": name}, 80) if line.strip()]
    assert heading == ["server", "state", "tools"]
    assert row[0] == name
