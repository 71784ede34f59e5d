"""What a person sees: results on one channel, all else on the other, Problems with a way out. SPEC §cli.

Every foreign text passes ``printable``; none is read as markup.
"""

import shlex
import sys
from dataclasses import dataclass
from urllib.parse import quote

import orjson
from rich.console import Console
from rich.text import Text

from app.cli.failures import CommandFailure, LocalFailure, ProblemAnswer, QuestionOpen, SignInOpen
from app.cli.members import content_text, objects_of, text_of
from app.cli.printable import one_line, printable
from app.cli.remedies import remedy
from app.cli.server_table import server_table
from app.core.json_value import Json, JsonObject
from app.core.withheld import explained

CALLBACK = '{"callbackUrl": "THE URL THAT THE BROWSER WAS SENT TO"}'
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
        servers = objects_of(result.get("servers"))
        if servers:
            self.out.print(server_table(servers, self.out))
        else:
            self.say(f"Nothing is attached to workspace '{workspace}'.")
            attach = f"plurnk-mcpd attach{self.same} NAME"
            self.note(f"Attach a server: {attach} -- COMMAND…, or {attach} URL")
        for server in servers:
            problem = server.get("problem")
            if isinstance(problem, dict):
                self.say(
                    Text(
                        f"{one_line(text_of(server, 'name'))}: {one_line(text_of(problem, 'detail'))}",
                        style="red",
                    )
                )
        if detached := result.get("detached"):
            self.say(
                f"Hidden defaults: {', '.join(map(str, detached))}" if isinstance(detached, list) else ""
            )
        for pending in objects_of(result.get("pending")):
            self.show_authorization(text_of(pending, "name"), pending)

    def show_server(self, verb: str, workspace: str, server: JsonObject) -> None:
        """Show the summary that a change answered with."""
        name = text_of(server, "name")
        self.say(
            Text.assemble(
                ("✓ ", "green"),
                f"{verb} ",
                (one_line(name), "bold"),
                f" ({one_line(text_of(server, 'transport'))}, workspace {workspace})",
            )
        )
        identity = server.get("server")
        if isinstance(identity, dict):
            self.say(
                f"  server   {one_line(text_of(identity, 'name'))} {one_line(text_of(identity, 'version'))}"
            )
        tools = server.get("tools")
        if isinstance(tools, list):
            self.say(f"  tools    {', '.join(one_line(str(tool)) for tool in tools) or '(none)'}")
        self.say(f"  also     {_count(server, 'resource')}, {_count(server, 'prompt')}")
        for withheld in objects_of(server.get("withheld")):
            reason = text_of(withheld, "reason")
            why = f"{explained(reason)} ({one_line(reason)})"
            self.say(Text(f"  withheld {one_line(text_of(withheld, 'name'))}: {why}"))

    def show_authorization(self, name: str, answer: JsonObject, *, is_result: bool = True) -> None:
        """Show where a person must go before the change can be made."""
        authorization = answer.get("authorization")
        if isinstance(authorization, dict):
            tell = self.say if is_result else self.note
            tell(f"{name} waits for a sign-in until {text_of(authorization, 'expiresAt')}:")
            tell(f"  {text_of(authorization, 'url')}")
            self.note(f"  Next: plurnk-mcpd authorize{self.same} {shlex.quote(one_line(name))}")

    def show_call_result(self, result: JsonObject) -> None:
        """Show what a tool answered: its content, else its structured result."""
        if result.get("rejected"):
            self.note(Text("✗ The call was rejected; nothing was sent.", style="yellow"))
            return
        if result.get("isError"):
            self.note(Text("✗ The tool reports an error:", style="red"))
        parts = objects_of(result.get("content"))
        for part in parts:
            self.say(content_text(part))
        if not parts and "structuredContent" in result:
            self.say(json_text(result["structuredContent"]))

    def show_failure(self, failure: CommandFailure) -> None:
        """Say what happened, to whom, and what to do next."""
        match failure:
            case ProblemAnswer(problem=problem):
                self._show_problem(problem)
            case QuestionOpen():
                self._show_question(failure)
            case SignInOpen(workspace=workspace, name=name):
                self.show_authorization(name, {"authorization": failure.authorization}, is_result=False)
                self.note(f"  Or POST /v1/workspaces/{workspace}/servers/{name}/oauth/complete {CALLBACK}")
            case LocalFailure(what=what, remedy=remedy):
                self.note(Text(f"✗ {printable(what)}", style="red"))
                self.note(f"  Next: {remedy}")
            case _:
                raise AssertionError(failure)

    def _show_problem(self, problem: JsonObject) -> None:
        title, code = one_line(text_of(problem, "title")), one_line(text_of(problem, "code"))
        self.note(Text(f"✗ {title} ({code}, {problem.get('status')})", style="red"))
        self.note(f"  {one_line(text_of(problem, 'detail'), limit=2000)}")
        facts = [f"{fact}: {one_line(str(problem[fact]))}" for fact in SHOWN_FACTS if fact in problem]
        if facts:
            self.note(Text("  " + "   ".join(facts), style="dim"))
        for line in _explanations(problem):
            self.note(f"  {line}")
        for line in printable(text_of(problem, "stderr")).splitlines()[-10:]:
            self.note(Text(f"  │ {line}", style="dim"))
        if way := remedy(problem, self.same):
            self.note(f"  Next: {way}")

    def _show_question(self, failure: QuestionOpen) -> None:
        self.note(Text(f"? Operation {one_line(failure.operation)} waits for an answer.", style="yellow"))
        for interrupt in failure.interrupts:
            for line in _question(interrupt):
                self.note(f"  {line}")
            self.note(f"  interrupt {text_of(interrupt, 'id')}, open until {text_of(interrupt, 'expiresAt')}")
            path = (
                f"/v1/workspaces/{failure.workspace}/interactions/{quote(text_of(interrupt, 'id'), safe='')}"
            )
            self.note(f"  Next: answer it with POST {path}{_way(interrupt)}")


def _facts(interrupt: JsonObject) -> JsonObject:
    metadata = interrupt.get("metadata")
    plurnk = metadata.get("plurnk") if isinstance(metadata, dict) else None
    return plurnk if isinstance(plurnk, dict) else {}


def _question(interrupt: JsonObject) -> list[str]:
    """Return what is asked: the message, then the whole URL or the fields of the form."""
    facts, schema = _facts(interrupt), interrupt.get("responseSchema")
    lines = [one_line(text_of(interrupt, "message"), limit=2000)]
    match facts.get("mode"):
        case "url":
            lines.append(
                f"Server {one_line(text_of(facts, 'server'))} wants you to open, at {text_of(facts, 'host')}:"
            )
            lines.append(printable(text_of(facts, "url")))
        case "form" if isinstance(schema, dict) and isinstance(fields := schema.get("properties"), dict):
            required = schema.get("required")
            needed = required if isinstance(required, list) else []
            named = [one_line(name) + ("" if name in needed else " (optional)") for name in fields]
            lines.append(
                f"Server {one_line(text_of(facts, 'server'))} asks for: {', '.join(named) or 'a yes'}"
            )
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


def _count(document: JsonObject, noun: str) -> str:
    number = document.get(f"{noun}s", 0)
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _explanations(problem: JsonObject) -> list[str]:
    """Return the lines that a Problem's structured facts give beyond its detail."""
    errors = [
        f"{text_of(error, 'pointer') or '(the whole)'}: {one_line(text_of(error, 'message'))}"
        for error in objects_of(problem.get("errors"))
    ]
    lines = [line for line in errors if line not in one_line(text_of(problem, "detail"), limit=2000)]
    if isinstance(cause := problem.get("cause"), dict):
        lines.append(f"because: {one_line(text_of(cause, 'detail'))}")
    if isinstance(remote := problem.get("remote"), dict):
        lines.append(f"the server says: {one_line(text_of(remote, 'message'))} ({text_of(remote, 'code')})")
    if isinstance(operations := problem.get("operations"), list):
        lines.append(f"operations: {', '.join(map(str, operations))}")
    return lines
