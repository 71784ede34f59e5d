"""What a person sees: results on one channel, all else on the other, Problems with a way out. SPEC §cli.

Every foreign text passes ``printable``; none is read as markup.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.failures import CommandFailure, LocalFailure, ProblemAnswer, QuestionOpen
from app.cli.printable import one_line, printable
from app.core.json_value import Json, JsonObject

STATE_STYLES = {
    "connected": "green",
    "preparing": "yellow",
    "authorization-required": "yellow",
    "unavailable": "red",
}
REMEDIES = {
    "server-exists": "Detach it first: plurnk-mcpd detach{same} {server}",
    "server-not-found": "See what is attached: plurnk-mcpd list{same}",
    "tool-not-found": "See the names of its tools: plurnk-mcpd list{same} --json",
    "server-not-connected": "See why: plurnk-mcpd list{same}",
    "unauthenticated": 'Give the token: export PLURNK_TOKEN="$(plurnk-mcpd token)"',
    "reference-missing": "Set {variable} in the daemon's environment or in its .env file, and restart it.",
    "internal": "The daemon's log has the rest; look there for the trace id.",
}
SHOWN_FACTS = ("server", "transport", "httpStatus", "exitStatus", "signal", "reason", "outcome", "trace")


def json_text(value: Json) -> str:
    """Return readable JSON that is safe on a terminal."""
    return printable(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


@dataclass(frozen=True, slots=True)
class Screen:
    """The two channels of a command."""

    out: Console
    err: Console
    same: str = ""
    """The flags, after a space, with which another command means the same daemon and workspace."""

    @property
    def has_person(self) -> bool:
        """Whether somebody can be asked: both the keyboard and the screen are a terminal."""
        return self.err.is_terminal and sys.stdin.isatty()

    def say(self, text: str | Text) -> None:
        """Write a line of the result."""
        self.out.print(text if isinstance(text, Text) else Text(printable(text)), soft_wrap=True)

    def note(self, text: str | Text) -> None:
        """Write a line beside the result."""
        self.err.print(text if isinstance(text, Text) else Text(printable(text)), soft_wrap=True)

    def show_servers(self, workspace: str, result: JsonObject) -> None:
        """Show what ``workspace.mcp.list`` answered."""
        servers = _objects(result.get("servers"))
        if servers:
            self.out.print(_server_table(servers, self.out))
        else:
            self.say(f"Nothing is attached to workspace '{workspace}'.")
            attach = f"plurnk-mcpd attach{self.same} NAME"
            self.note(f"Attach a server: {attach} -- COMMAND…, or {attach} URL")
        for server in servers:
            problem = server.get("problem")
            if isinstance(problem, dict):
                self.say(Text(f"{_text(server, 'name')}: {one_line(_text(problem, 'detail'))}", style="red"))
        if detached := result.get("detached"):
            self.say(
                f"Hidden defaults: {', '.join(map(str, detached))}" if isinstance(detached, list) else ""
            )
        for pending in _objects(result.get("pending")):
            self.show_authorization(_text(pending, "name"), pending)

    def show_server(self, verb: str, workspace: str, server: JsonObject) -> None:
        """Show the summary that a change answered with."""
        name = _text(server, "name")
        self.say(
            Text.assemble(
                ("✓ ", "green"),
                f"{verb} ",
                (name, "bold"),
                f" ({_text(server, 'transport')}, workspace {workspace})",
            )
        )
        identity = server.get("server")
        if isinstance(identity, dict):
            self.say(f"  server   {one_line(_text(identity, 'name'))} {one_line(_text(identity, 'version'))}")
        tools = server.get("tools")
        if isinstance(tools, list):
            self.say(f"  tools    {', '.join(one_line(str(tool)) for tool in tools) or '(none)'}")
        self.say(f"  also     {_count(server, 'resource')}, {_count(server, 'prompt')}")
        for withheld in _objects(server.get("withheld")):
            self.say(
                Text(f"  withheld {one_line(_text(withheld, 'name'))}: {one_line(_text(withheld, 'reason'))}")
            )

    def show_authorization(self, name: str, answer: JsonObject) -> None:
        """Show where a person must go before the change can be made."""
        authorization = answer.get("authorization")
        if isinstance(authorization, dict):
            self.say(f"{name} waits for a sign-in until {_text(authorization, 'expiresAt')}:")
            self.say(f"  {_text(authorization, 'url')}")

    def show_call_result(self, result: JsonObject) -> None:
        """Show what a tool answered: its content, else its structured result."""
        if result.get("rejected"):
            self.note(Text("✗ The call was rejected; nothing was sent.", style="yellow"))
            return
        if result.get("isError"):
            self.note(Text("✗ The tool reports an error:", style="red"))
        parts = _objects(result.get("content"))
        for part in parts:
            self.say(_content(part))
        if not parts and "structuredContent" in result:
            self.say(json_text(result["structuredContent"]))

    def show_failure(self, failure: CommandFailure) -> None:
        """Say what happened, to whom, and what to do next."""
        match failure:
            case ProblemAnswer(problem=problem):
                self._show_problem(problem)
            case QuestionOpen():
                self._show_question(failure)
            case LocalFailure(what=what, remedy=remedy):
                self.note(Text(f"✗ {printable(what)}", style="red"))
                self.note(f"  Next: {remedy}")
            case _:
                raise AssertionError(failure)

    def _show_problem(self, problem: JsonObject) -> None:
        title, code = one_line(_text(problem, "title")), one_line(_text(problem, "code"))
        self.note(Text(f"✗ {title} ({code}, {problem.get('status')})", style="red"))
        self.note(f"  {one_line(_text(problem, 'detail'), limit=2000)}")
        facts = [f"{fact}: {one_line(str(problem[fact]))}" for fact in SHOWN_FACTS if fact in problem]
        if facts:
            self.note(Text("  " + "   ".join(facts), style="dim"))
        for line in _explanations(problem):
            self.note(f"  {line}")
        for line in printable(_text(problem, "stderr")).splitlines()[-10:]:
            self.note(Text(f"  │ {line}", style="dim"))
        if remedy := _remedy(problem, self.same):
            self.note(f"  Next: {remedy}")

    def _show_question(self, failure: QuestionOpen) -> None:
        self.note(Text(f"? Operation {failure.operation} waits for an answer.", style="yellow"))
        for interrupt in failure.interrupts:
            for line in _question(interrupt):
                self.note(f"  {line}")
            self.note(f"  interrupt {_text(interrupt, 'id')}, open until {_text(interrupt, 'expiresAt')}")
            path = f"/v1/workspaces/{failure.workspace}/interactions/{_text(interrupt, 'id')}"
            self.note(f"  Next: answer it with POST {path}{_way(interrupt)}")


def _text(document: JsonObject, member: str) -> str:
    value = document.get(member)
    return "" if value is None else str(value)


def _facts(interrupt: JsonObject) -> JsonObject:
    metadata = interrupt.get("metadata")
    plurnk = metadata.get("plurnk") if isinstance(metadata, dict) else None
    return plurnk if isinstance(plurnk, dict) else {}


def _question(interrupt: JsonObject) -> list[str]:
    """Return what is asked: the message, then the whole URL or the fields of the form."""
    facts, schema = _facts(interrupt), interrupt.get("responseSchema")
    lines = [one_line(_text(interrupt, "message"), limit=2000)]
    match facts.get("mode"):
        case "url":
            lines.append(
                f"Server {one_line(_text(facts, 'server'))} wants you to open, at {_text(facts, 'host')}:"
            )
            lines.append(printable(_text(facts, "url")))
        case "form" if isinstance(schema, dict) and isinstance(fields := schema.get("properties"), dict):
            required = schema.get("required")
            needed = required if isinstance(required, list) else []
            named = [one_line(name) + ("" if name in needed else " (optional)") for name in fields]
            lines.append(f"Server {one_line(_text(facts, 'server'))} asks for: {', '.join(named) or 'a yes'}")
        case _:
            pass
    return lines


def _way(interrupt: JsonObject) -> str:
    """Return how the question is answered over REST, and what else helps."""
    match _facts(interrupt).get("mode"):
        case "url":
            return ' {"status": "resolved"} once you agree to open it, or {"status": "cancelled"}.'
        case "form":
            return ' {"status": "resolved", "payload": {FIELDS}}, or {"status": "cancelled"}.'
        case _:
            return ", or call again with --yes to accept proposals."


def _objects(value: Json) -> list[JsonObject]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _count(document: JsonObject, noun: str) -> str:
    number = document.get(f"{noun}s", 0)
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _server_table(servers: Sequence[JsonObject], console: Console) -> Table:
    """Return the table with as many columns as the terminal has room for, unfolded."""
    columns = list(COLUMNS)
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
    return lambda server: Text(one_line(_text(server, member)) or "-")


def _name(server: JsonObject) -> Text:
    return Text(one_line(_text(server, "name")), style="bold")


def _state(server: JsonObject) -> Text:
    state = one_line(_text(server, "state"))
    return Text(state, style=STATE_STYLES.get(state, ""))


def _tools(server: JsonObject) -> Text:
    tools = server.get("tools")
    return Text(str(len(tools)) if isinstance(tools, list) else "-")


def _implementation(server: JsonObject) -> Text:
    identity = server.get("server")
    if not isinstance(identity, dict):
        return Text("-")
    return Text(one_line(f"{_text(identity, 'name')} {_text(identity, 'version')}", limit=60))


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


def _content(part: JsonObject) -> str:
    """Return one content part as text: the text itself, or what kind of thing it is."""
    match part.get("type"):
        case "text":
            return _text(part, "text")
        case "resource_link":
            return f"[{one_line(_text(part, 'name'))}: {one_line(_text(part, 'uri'))}]"
        case "resource" if isinstance(resource := part.get("resource"), dict):
            return _text(resource, "text") or f"[resource {one_line(_text(resource, 'uri'))}]"
        case kind:
            size = len(_text(part, "data")) * 3 // 4
            media = one_line(_text(part, "mimeType"))
            return f"[{one_line(str(kind))} {media}, about {size} bytes; --json has it]"


def _explanations(problem: JsonObject) -> list[str]:
    """Return the lines that a Problem's structured facts give beyond its detail."""
    errors = [
        f"{_text(error, 'pointer') or '(the whole)'}: {one_line(_text(error, 'message'))}"
        for error in _objects(problem.get("errors"))
    ]
    lines = [line for line in errors if line not in one_line(_text(problem, "detail"), limit=2000)]
    if isinstance(cause := problem.get("cause"), dict):
        lines.append(f"because: {one_line(_text(cause, 'detail'))}")
    if isinstance(remote := problem.get("remote"), dict):
        lines.append(f"the server says: {one_line(_text(remote, 'message'))} ({_text(remote, 'code')})")
    if isinstance(operations := problem.get("operations"), list):
        lines.append(f"operations: {', '.join(map(str, operations))}")
    return lines


def _remedy(problem: JsonObject, same: str) -> str | None:
    """Return the command that helps, where one does."""
    remedy = REMEDIES.get(_text(problem, "code"))
    if remedy is None:
        return "Trying again later may help." if problem.get("retryable") else None
    remedy = remedy.replace("{same}", same)
    for fact in ("server", "variable"):
        remedy = remedy.replace(f"{{{fact}}}", one_line(_text(problem, fact)) or fact.upper())
    return remedy
