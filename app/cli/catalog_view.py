"""What a person sees of tools, resources, prompts and completions. SPEC §cli, §addresses."""

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.members import content_text, objects_of, text_of
from app.cli.printable import one_line
from app.cli.screen import Screen, json_text
from app.core.json_value import JsonObject

_EFFECTS = {"read": "runs at once", "host": "asks first"}
_GAP = 3
"""Columns of a terminal between two columns of a table."""
_LAST_MIN = 12


def show_tools(screen: Screen, result: JsonObject, *, is_detailed: bool) -> None:
    """Show what ``workspace.mcp.tools`` answered: a table, or every tool of one server with its signature."""
    rows = objects_of(result.get("tools"))
    if not rows:
        screen.say("No tool is enabled.")
        screen.note(f"  Next: plurnk-mcpd list{screen.same}")
    elif is_detailed:
        for row in rows:
            _show_tool(screen, row)
    else:
        screen.out.print(_table(screen.out, ("server", "tool", "effect", "description"), rows))


def _show_tool(screen: Screen, row: JsonObject) -> None:
    effect = text_of(row, "effect")
    screen.say(
        Text.assemble((one_line(text_of(row, "tool")), "bold"), f"  {_EFFECTS.get(effect, one_line(effect))}")
    )
    screen.say(Text(f"  {one_line(text_of(row, 'signature'), limit=2000)}", style="cyan"))
    if about := text_of(row, "description"):
        screen.say(f"  {one_line(about, limit=2000)}")


def show_read(screen: Screen, result: JsonObject) -> None:
    """Show what ``workspace.mcp.read`` answered: the contents, the messages of a prompt, or an index."""
    if "contents" in result:
        for each in objects_of(result["contents"]):
            screen.say(_contents(each))
    elif "messages" in result:
        for message in objects_of(result["messages"]):
            content = message.get("content")
            screen.say(Text(f"{one_line(text_of(message, 'role'))}:", style="bold"))
            screen.say(content_text(content) if isinstance(content, dict) else "")
    elif "prompts" in result:
        rows = [{**each, "arguments": _arguments(each)} for each in objects_of(result["prompts"])]
        _show_index(screen, "prompts", ("name", "arguments", "description"), rows)
    elif "resources" in result or "resourceTemplates" in result:
        listed = [
            {**each, "uri": each.get("uriTemplate")} for each in objects_of(result.get("resourceTemplates"))
        ]
        rows = [*objects_of(result.get("resources")), *listed]
        _show_index(screen, "resources", ("uri", "name", "description"), rows)
    else:
        screen.say(json_text(result))


def show_completion(screen: Screen, result: JsonObject) -> None:
    """Show the suggested values, one a line, and beside them that there are more."""
    completion = result.get("completion")
    if not isinstance(completion, dict):
        return
    values = completion.get("values")
    for value in values if isinstance(values, list) else ():
        screen.say(one_line(str(value)))
    total = completion.get("total")
    if completion.get("hasMore") or (
        isinstance(total, int) and isinstance(values, list) and total > len(values)
    ):
        screen.note("There are more." if total is None else f"There are {total} in all.")


def _contents(each: JsonObject) -> str:
    if "text" in each:
        return text_of(each, "text")
    media, size = one_line(text_of(each, "mimeType")), len(text_of(each, "blob")) * 3 // 4
    return f"[{one_line(text_of(each, 'uri'))} {media}, about {size} bytes; --json has it]"


def _arguments(prompt: JsonObject) -> str:
    return ", ".join(
        f"{text_of(each, 'name')}" + ("" if each.get("required") else "?")
        for each in objects_of(prompt.get("arguments"))
    )


def _show_index(screen: Screen, what: str, columns: Sequence[str], rows: Sequence[JsonObject]) -> None:
    if rows:
        screen.out.print(_table(screen.out, columns, rows))
    else:
        screen.say(f"It lists no {what}.")


def _table(console: Console, columns: Sequence[str], rows: Sequence[JsonObject]) -> Table:
    """Return a table; its last column has the room that the others leave, or goes where they leave little."""
    *whole, last = columns
    cells = [[one_line(text_of(row, column)) or "-" for column in whole] for row in rows]
    table = _bare_table(whole, cells)
    room = console.width - console.measure(table).maximum - _GAP
    if room < _LAST_MIN:
        return table
    ends = [one_line(text_of(row, last), limit=room) or "-" for row in rows]
    return _bare_table(columns, [[*each, end] for each, end in zip(cells, ends, strict=True)])


def _bare_table(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for each in cells:
        table.add_row(*map(Text, each))
    return table
