"""Puts a run's open questions to the person at the terminal, where one is there. SPEC §calls, §cli."""

from collections.abc import Callable, Sequence

from rich.panel import Panel
from rich.text import Text

from app.cli.failures import QuestionOpen
from app.cli.printable import one_line
from app.cli.screen import Screen, json_text
from app.core.json_value import JsonObject

PROPOSAL = "tool_call"
ACCEPT: JsonObject = {"decision": "accept"}
REJECT: JsonObject = {"decision": "reject"}


def answer(
    interrupts: Sequence[JsonObject],
    *,
    workspace: str,
    accepts_proposals: bool,
    screen: Screen,
    ask: Callable[[str], str],
) -> list[JsonObject]:
    """Return the AG-UI resume entries that answer all of these questions.

    Raises:
        QuestionOpen: nobody can answer one of them, or the person left; all of them stay open.
    """
    still_open = QuestionOpen(workspace, operation_of(interrupts), interrupts)
    entries: list[JsonObject] = []
    for interrupt in interrupts:
        if interrupt.get("reason") != PROPOSAL or not (accepts_proposals or screen.has_person):
            raise still_open
        try:
            payload = ACCEPT if accepts_proposals else _decision(interrupt, screen, ask)
        except (EOFError, KeyboardInterrupt):
            raise still_open from None
        entries.append({"interruptId": interrupt["id"], "status": "resolved", "payload": payload})
    return entries


def operation_of(interrupts: Sequence[JsonObject]) -> str:
    """Return the operation that a set of interrupts belongs to."""
    metadata = interrupts[0].get("metadata") if interrupts else None
    plurnk = metadata.get("plurnk") if isinstance(metadata, dict) else None
    return str(plurnk.get("operation", "")) if isinstance(plurnk, dict) else ""


def _decision(interrupt: JsonObject, screen: Screen, ask: Callable[[str], str]) -> JsonObject:
    metadata = interrupt.get("metadata")
    plurnk = metadata.get("plurnk") if isinstance(metadata, dict) else None
    facts: JsonObject = plurnk if isinstance(plurnk, dict) else {}
    title = f"{one_line(str(facts.get('server', '')))} · {one_line(str(facts.get('tool', '')))}"
    body = Text(one_line(str(interrupt.get("message", "")), limit=2000))
    if "arguments" in facts:
        body.append("\n\n").append(json_text(facts["arguments"]), style="cyan")
    screen.err.print(Panel(body, title=Text(title), title_align="left", expand=False))
    while True:
        match ask("Run it? [y/N] ").strip().lower():
            case "y" | "yes":
                return ACCEPT
            case "" | "n" | "no":
                return REJECT
            case _:
                screen.note("Answer y or n.")
