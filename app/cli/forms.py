"""Asks an elicitation form field by field, and whether to send what was answered. SPEC §cli, §calls."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import orjson
from rich.text import Text

from app.cli.fields import Field, NotAnAnswer, fields_of
from app.cli.printable import one_line, printable
from app.cli.screen import Screen
from app.core.json_value import Json, JsonObject
from app.core.schemas import SchemaInvalid, validate

Ask: TypeAlias = Callable[[str], str]
Refusal: TypeAlias = Literal["decline", "cancel"]
HELP: Final = (
    "Enter takes the default or leaves an optional answer out. "
    "/skip leaves it out, /empty is an empty answer, /decline says no, /cancel dismisses the question."
)
Decision: TypeAlias = Literal["send", "again", "decline", "cancel"]
_DECISIONS: Final[Mapping[str, Decision]] = MappingProxyType(
    {
        **dict.fromkeys(("y", "yes", "send"), "send"),
        **dict.fromkeys(("a", "again"), "again"),
        **dict.fromkeys(("d", "decline", "/decline"), "decline"),
        **dict.fromkeys(("c", "cancel", "/cancel"), "cancel"),
    }
)


class Refused(Exception):
    """The person gives no answer: an explicit no, or neither yes nor no."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal)
        self.refusal: Refusal = refusal


def fill_in(schema: JsonObject, *, screen: Screen, ask: Ask) -> JsonObject:
    """Return the answers to a form, which fit its schema.

    Raises:
        Refused: the person declines or cancels.
        EOFError: the person left.
    """
    fields = fields_of(schema)
    given: JsonObject = {}
    if fields:
        screen.note(Text(HELP, style="dim"))
    while True:
        given = _answers(fields, given, screen=screen, ask=ask)
        if fields and not _fit_together(schema, given, screen):
            continue
        decision = decide(ask, "Send it? [y]es, [a]gain, [d]ecline, [c]ancel: ", screen=screen)
        if decision == "send":
            return given
        if decision != "again":
            raise Refused(decision)


def decide(ask: Ask, prompt: str, *, screen: Screen) -> Decision:
    """Return what the person decides about the whole; only a word decides."""
    while True:
        decision = _DECISIONS.get(ask(prompt).strip().casefold())
        if decision is not None:
            return decision
        screen.note("Answer with one of the words, or with its letter.")


def _answers(fields: list[Field], before: JsonObject, *, screen: Screen, ask: Ask) -> JsonObject:
    """Return an answer for each field; those of the time before are what Enter takes."""
    given: JsonObject = {}
    for field in fields:
        default = before if field.name in before else field.schema
        member = field.name if field.name in before else "default"
        has_default, offered = member in default, default.get(member)
        _show(field, screen)
        prompt = _prompt(field, offered, has_default=has_default)
        while True:
            line = ask(prompt).rstrip("\r\n")
            try:
                match _word(line):
                    case "/skip":
                        _require_optional(field)
                    case "" if has_default:
                        given[field.name] = offered
                    case "":
                        _require_optional(field)
                    case "/empty":
                        given[field.name] = _fitting(field, "")
                    case _:
                        given[field.name] = _fitting(field, line[1:] if line.startswith("//") else line)
            except NotAnAnswer as wrong:
                screen.note(Text(f"  ✗ {one_line(field.name)}: {printable(str(wrong))}", style="red"))
                continue
            break
    return given


def _word(line: str) -> str:
    """Return what a line says; the words that refuse end the form.

    Raises:
        Refused: it does.
    """
    word = line.strip().casefold()
    match word.removeprefix("/"):
        case "decline" | "cancel" as refusal if word.startswith("/"):
            raise Refused(refusal)
        case _:
            return word


def _require_optional(field: Field) -> None:
    if field.is_required:
        raise NotAnAnswer("it is required")


def _fitting(field: Field, line: str) -> Json:
    """Return the value of a line, where it fits the field's own schema; the whole is judged afterwards."""
    value = field.value_of(line)
    try:
        errors = validate(field.schema, value)
    except SchemaInvalid:
        # It means something in the whole schema only.
        return value
    if errors:
        raise NotAnAnswer(f"it {errors[0][1]}")
    return value


def _fit_together(schema: JsonObject, given: JsonObject, screen: Screen) -> bool:
    """Return whether the answers fit the whole schema; says why they do not."""
    try:
        errors = validate(schema, given)
    except SchemaInvalid:
        return True
    for pointer, phrase in errors:
        screen.note(Text(f"  ✗ {one_line(pointer) or 'the answers'}: it {one_line(phrase)}", style="red"))
    return not errors


def _show(field: Field, screen: Screen) -> None:
    title, about = field.schema.get("title"), field.schema.get("description")
    heading = Text(one_line(field.name), style="bold")
    if isinstance(title, str) and title != field.name:
        heading.append(f"  {one_line(title)}", style="not bold")
    if not field.is_required:
        heading.append("  (optional)", style="not bold dim")
    screen.note(heading)
    if isinstance(about, str):
        screen.note(f"  {one_line(about)}")
    for place, choice in enumerate(field.choices, start=1):
        mark = str(place) if field.has_numbers else "-"
        name = "" if choice.title == choice.value else f"  {one_line(choice.title)}"
        screen.note(f"  {mark}  {one_line(choice.value)}{name}")


def _prompt(field: Field, offered: Json, *, has_default: bool) -> str:
    parts = [field.hint] if field.hint else []
    if has_default:
        parts.append(f"default {_shown(offered)}")
    return f"  ({one_line('; '.join(parts))}) > " if parts else "  > "


def _shown(value: Json) -> str:
    match value:
        case bool():
            return "y" if value else "n"
        case str():
            return value
        case list():
            return ", ".join(map(_shown, value)) or "none"
        case _:
            return orjson.dumps(value).decode()
