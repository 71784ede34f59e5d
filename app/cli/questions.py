"""Puts a run's open questions to the person at the terminal, where one is there. SPEC §calls, §cli."""

from collections.abc import Sequence
from typing import Final

from rich.panel import Panel
from rich.text import Text

from app.cli.failures import QuestionOpen
from app.cli.forms import Refusal, Refused, decide, fill_in
from app.cli.printable import one_line, printable
from app.cli.screen import Screen, json_text
from app.cli.sign_in import Person, SignInLeft, callback_of, host_of
from app.core.json_value import Json, JsonObject

PROPOSAL = "tool_call"
ACCEPT: JsonObject = {"decision": "accept"}
REJECT: JsonObject = {"decision": "reject"}
CONSENT = "Open this page? [y]es, [d]ecline, [c]ancel: "
SIGN_IN = "Sign in there? [y]es, [d]ecline, [c]ancel: "
_REFUSALS: Final[dict[Refusal, JsonObject]] = {
    "decline": {"status": "cancelled", "metadata": {"plurnk": {"action": "decline"}}},
    "cancel": {"status": "cancelled"},
}


class Unanswerable(Exception):
    """A question of a kind that is not asked on a terminal."""


def answer(
    interrupts: Sequence[JsonObject], *, workspace: str, accepts_proposals: bool, person: Person
) -> list[JsonObject]:
    """Return the AG-UI resume entries that answer all of these questions, asked one after the other.

    Raises:
        QuestionOpen: nobody can answer one of them, or the person left; all of them stay open.
    """
    still_open = QuestionOpen(workspace, operation_of(interrupts), interrupts)
    entries: list[JsonObject] = []
    for place, interrupt in enumerate(interrupts, start=1):
        if accepts_proposals and interrupt.get("reason") == PROPOSAL:
            entries.append(_resolved(interrupt, ACCEPT))
            continue
        if not person.screen.has_person:
            raise still_open
        if len(interrupts) > 1:
            person.screen.note(f"Question {place} of {len(interrupts)}")
        try:
            entries.append(_asked(interrupt, person))
        except (EOFError, KeyboardInterrupt, Unanswerable, SignInLeft):
            raise still_open from None
        except Refused as refused:
            entries.append({"interruptId": interrupt["id"], **_REFUSALS[refused.refusal]})
    return entries


def operation_of(interrupts: Sequence[JsonObject]) -> str:
    """Return the operation that a set of interrupts belongs to."""
    return str(_facts(interrupts[0]).get("operation", "")) if interrupts else ""


def _facts(interrupt: JsonObject) -> JsonObject:
    metadata = interrupt.get("metadata")
    plurnk = metadata.get("plurnk") if isinstance(metadata, dict) else None
    return plurnk if isinstance(plurnk, dict) else {}


def _resolved(interrupt: JsonObject, payload: Json) -> JsonObject:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


def _asked(interrupt: JsonObject, person: Person) -> JsonObject:
    """Return the entry that the person's answer makes."""
    facts = _facts(interrupt)
    match interrupt.get("reason"), facts.get("mode"):
        case (kind, _) if kind == PROPOSAL:
            return _resolved(interrupt, _decision(interrupt, facts, person))
        case "input_required", "form":
            schema = interrupt.get("responseSchema")
            _show(interrupt, facts, person.screen)
            answers = fill_in(
                schema if isinstance(schema, dict) else {}, screen=person.screen, ask=person.ask
            )
            return _resolved(interrupt, answers)
        case "input_required", "url":
            _consent(interrupt, facts, person)
            return {"interruptId": interrupt["id"], "status": "resolved"}
        case "plurnk:authorization", _:
            return _resolved(interrupt, {"callbackUrl": _signed_in(interrupt, facts, person)})
        case _:
            raise Unanswerable


def _show(interrupt: JsonObject, facts: JsonObject, screen: Screen, *, more: Text | None = None) -> None:
    """Show who asks for what."""
    names = [one_line(str(facts[name])) for name in ("server", "tool") if name in facts]
    body = Text(one_line(str(interrupt.get("message", "")), limit=2000))
    if more is not None:
        body.append("\n\n").append(more)
    screen.err.print(Panel(body, title=Text(" · ".join(names)), title_align="left", expand=False))


def _decision(interrupt: JsonObject, facts: JsonObject, person: Person) -> JsonObject:
    arguments = Text(json_text(facts["arguments"]), style="cyan") if "arguments" in facts else None
    _show(interrupt, facts, person.screen, more=arguments)
    while True:
        match person.ask("Run it? [y/N] ").strip().lower():
            case "y" | "yes":
                return ACCEPT
            case "" | "n" | "no":
                return REJECT
            case _:
                person.screen.note("Answer y or n.")


def _consent(interrupt: JsonObject, facts: JsonObject, person: Person) -> None:
    """Return once the person agreed to open the page, which is then opened.

    Raises:
        Refused: the person did not agree.
    """
    url, screen = printable(str(facts.get("url", ""))), person.screen
    _show(interrupt, facts, screen, more=_host(str(facts.get("host", ""))))
    screen.note(f"  {url}")
    _agree(person, CONSENT)
    opened = person.browse(url)
    screen.note("Opened in the browser." if opened else "Open it in a browser yourself.")


def _signed_in(interrupt: JsonObject, facts: JsonObject, person: Person) -> str:
    """Return the URL that the browser was sent back to once the person agreed to sign in and did.

    Raises:
        Refused: the person did not agree.
        SignInLeft: nobody came back.
    """
    url = str(facts.get("url", ""))
    _show(interrupt, facts, person.screen, more=_host(host_of(url)))
    _agree(person, SIGN_IN)
    return callback_of(person, url, expires_at=str(interrupt.get("expiresAt", "")))


def _host(host: str) -> Text:
    return Text.assemble("Host: ", (one_line(host), "bold yellow"))


def _agree(person: Person, prompt: str) -> None:
    """Return once the person agreed.

    Raises:
        Refused: the person did not.
    """
    while (decision := decide(person.ask, prompt, screen=person.screen)) != "send":
        if decision != "again":
            raise Refused(decision)
