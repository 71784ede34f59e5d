"""What ``watch`` shows of a workspace: as a screen that follows it, or as lines. SPEC §cli."""

import shlex
from collections.abc import Mapping

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.style import Style
from rich.table import Table
from rich.text import Text

from app.cli.members import number, text_of
from app.cli.printable import one_line, printable
from app.cli.server_table import LIVE_COLUMNS, server_table
from app.cli.watched_state import Change, WatchedState
from app.core.json_value import JsonObject

BAR_WIDTH = 20


def dashboard(
    state: WatchedState, urls: Mapping[str, str], *, console: Console, workspace: str, same: str
) -> RenderableType:
    """Return the whole screen; ``urls`` says where the pending sign-ins lead."""
    servers = [*state.section("servers").values()]
    parts: list[RenderableType] = [Text(f"Workspace {workspace}", style="bold")]
    parts.append(
        server_table(servers, console, columns=LIVE_COLUMNS) if servers else Text("  Nothing is attached.")
    )
    for name, entry in state.section("pending").items():
        parts += _sign_in(name, entry, urls.get(name), same)
    if operations := state.section("operations"):
        parts += [Text("Operations", style="bold"), _operation_table(operations)]
    if questions := state.section("interactions"):
        parts.append(Text("Questions", style="bold"))
        parts += [Text(f"  {_question(key, entry)}") for key, entry in questions.items()]
    return Group(*parts)


def line_of(change: Change, urls: Mapping[str, str]) -> str:
    """Return one change as a line, for where there is no screen."""
    key, entry = one_line(change.key), change.entry
    match change.section:
        case "servers":
            return f"server {key}: " + ("gone" if entry is None else _server(entry))
        case "pending":
            return f"sign-in {key}: " + ("over" if entry is None else _waits(entry, urls.get(change.key)))
        case "operations":
            return f"operation {key}: ended" if entry is None else f"operation {_told(key, entry)}"
        case _:
            return f"question {key}: closed" if entry is None else f"question {_question(key, entry)}"


def _sign_in(name: str, entry: JsonObject, url: str | None, same: str) -> list[RenderableType]:
    expiry = one_line(text_of(entry, "expiresAt"))
    shown: list[RenderableType] = [
        Text.assemble(("Sign-in ", "bold yellow"), (one_line(name), "bold"), f" until {expiry}")
    ]
    if url is not None:
        # A link, so that a URL of several lines can be followed in one piece.
        whole = printable(url)
        shown.append(Text(f"  {whole}", style=Style(link=whole), overflow="fold"))
    shown.append(Text(f"  plurnk-mcpd authorize{same} {shlex.quote(one_line(name))}"))
    return shown


def _operation_table(operations: Mapping[str, JsonObject]) -> Table:
    """Return a row for each operation, with a bar where its server said how far it is of how much."""
    table = Table.grid(padding=(0, 2))
    for key, entry in operations.items():
        done, total, told = _progress(entry)
        bar = ProgressBar(total=total, completed=done, width=BAR_WIDTH) if total else Text()
        table.add_row(Text(f"  {_operation(key, entry)}"), bar, Text(told))
    return table


def _progress(entry: JsonObject) -> tuple[float, float | None, str]:
    """Return how far an operation is, of how much where that is known, and both in words."""
    progress = entry.get("progress")
    if not isinstance(progress, dict):
        return 0, None, ""
    done, total = number(progress.get("progress")) or 0, number(progress.get("total"))
    told = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    message = one_line(text_of(progress, "message"), limit=60)
    return done, total, f"{told}: {message}" if message else told


def _server(entry: JsonObject) -> str:
    tools = f", {entry['tools']} tools" if "tools" in entry else ""
    return f"{one_line(text_of(entry, 'state'))}{tools}"


def _waits(entry: JsonObject, url: str | None) -> str:
    where = "" if url is None else f" at {printable(url)}"
    return f"waits until {one_line(text_of(entry, 'expiresAt'))}{where}"


def _operation(key: str, entry: JsonObject) -> str:
    return f"{one_line(key)}: {_whose(entry)} {one_line(text_of(entry, 'state'))}"


def _told(key: str, entry: JsonObject) -> str:
    _, _, told = _progress(entry)
    return f"{_operation(key, entry)} {told}".rstrip()


def _question(key: str, entry: JsonObject) -> str:
    until = one_line(text_of(entry, "expiresAt"))
    return f"{one_line(key)}: {_whose(entry)} {one_line(text_of(entry, 'message'))} (until {until})"


def _whose(entry: JsonObject) -> str:
    return " · ".join(one_line(text_of(entry, name)) for name in ("server", "tool") if name in entry)
