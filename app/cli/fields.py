"""One field of an elicitation form: what is asked, and what a typed line means. SPEC §cli, §calls.

The values are those of MCP 2026-07-28 ``PrimitiveSchemaDefinition``; what is none of them is asked as JSON. Nothing
is shown or read here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Final, Literal, TypeAlias
from urllib.parse import urlsplit

import orjson

from app.core.json_value import Json, JsonObject

Kind: TypeAlias = Literal["choice", "choices", "yes-no", "integer", "number", "text", "json"]
_YES: Final = frozenset({"y", "yes", "true"})
_NO: Final = frozenset({"n", "no", "false"})
_HINTS: Final[Mapping[Kind, str]] = MappingProxyType(
    {"yes-no": "y or n", "integer": "a whole number", "number": "a number", "json": "JSON"}
)


class NotAnAnswer(Exception):
    """A line that gives the field no value; the text says what is needed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the values to choose from."""

    value: str
    title: str


@dataclass(frozen=True, slots=True)
class Field:
    """What a form asks under one name."""

    name: str
    schema: JsonObject
    is_required: bool
    kind: Kind
    choices: tuple[Choice, ...] = ()

    @property
    def has_numbers(self) -> bool:
        """Whether a choice may be named by its place; not where a value could be read as one."""
        return not any(choice.value.strip().isdecimal() for choice in self.choices)

    @property
    def hint(self) -> str:
        """What a line has to hold, in a few words; empty for any text."""
        limits = [
            phrase.format(self.schema[keyword])
            for keyword, phrase in _LIMITS.items()
            if keyword in self.schema
        ]
        if self.kind in {"choice", "choices"}:
            way = f"1-{len(self.choices)} or the value" if self.has_numbers else "the value"
            limits.insert(0, f"{way}, several parted by commas" if self.kind == "choices" else way)
        elif self.kind in _HINTS:
            limits.insert(0, _HINTS[self.kind])
        elif isinstance(form := self.schema.get("format"), str) and form in _FORMATS:
            limits.insert(0, _FORMATS[form][1])
        return ", ".join(limits)

    def value_of(self, line: str) -> Json:
        """Return the value that a line stands for; whether it keeps within the limits, the schema says.

        Raises:
            NotAnAnswer: it stands for none.
        """
        return _READERS[self.kind](self, line)


_LIMITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "minLength": "at least {} characters",
        "maxLength": "at most {} characters",
        "minimum": "at least {}",
        "maximum": "at most {}",
        "minItems": "at least {} of them",
        "maxItems": "at most {} of them",
    }
)


def fields_of(schema: Mapping[str, Json]) -> list[Field]:
    """Return the fields of a form in the order in which its server names them."""
    properties, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list) else []
    return [
        _field(name, each if isinstance(each, dict) else {}, is_required=name in needed)
        for name, each in (properties.items() if isinstance(properties, dict) else ())
    ]


def _field(name: str, schema: JsonObject, *, is_required: bool) -> Field:
    if choices := _choices(schema):
        return Field(name, schema, is_required, "choice", choices)
    kind: Kind = "json"
    match schema.get("type"):
        case "array":
            items = schema.get("items")
            choices = _choices(items) if isinstance(items, dict) else ()
            kind = "choices" if choices else "json"
        case "boolean":
            kind = "yes-no"
        case "integer":
            kind = "integer"
        case "number":
            kind = "number"
        case "string":
            kind = "text"
        case _:
            pass
    return Field(name, schema, is_required, kind, choices)


def _choices(schema: JsonObject) -> tuple[Choice, ...]:
    """Return the choices that a schema leaves, where they are texts; with titles where it gives some."""
    if isinstance(values := schema.get("enum"), list):
        names = schema.get("enumNames")
        titles = names if isinstance(names, list) and len(names) == len(values) else values
        pairs = list(zip(values, titles, strict=True))
    else:
        listed = schema.get("oneOf", schema.get("anyOf"))
        entries = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        pairs = [(each.get("const"), each.get("title", each.get("const"))) for each in entries]
    if not all(isinstance(value, str) for value, _ in pairs):
        return ()
    return tuple(Choice(str(value), str(title)) for value, title in pairs)


def _choice(field: Field, line: str) -> str:
    word = line.strip()
    for choice in field.choices:
        if word == choice.value:
            return choice.value
    if field.has_numbers and word.isdecimal() and 1 <= int(word) <= len(field.choices):
        return field.choices[int(word) - 1].value
    meant = {choice.value for choice in field.choices if choice.title.casefold() == word.casefold()}
    if len(meant) != 1:
        raise NotAnAnswer(f"it must be {field.hint.partition(',')[0]}")
    return meant.pop()


def _several(field: Field, line: str) -> list[Json]:
    if not line.strip():
        return []
    return [*dict.fromkeys(_choice(field, word) for word in line.split(","))]


def _yes_no(_field: Field, line: str) -> bool:
    word = line.strip().casefold()
    if word not in _YES | _NO:
        raise NotAnAnswer("it must be y or n")
    return word in _YES


def _number(field: Field, line: str) -> Json:
    needed = NotAnAnswer(f"it must be {_HINTS[field.kind]}")
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise needed from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise needed
    if field.kind == "integer" and value != int(value):
        raise needed
    return value


def _text(field: Field, line: str) -> str:
    named = field.schema.get("format")
    if isinstance(named, str) and named in _FORMATS:
        fits, phrase = _FORMATS[named]
        if not fits(line.strip()):
            raise NotAnAnswer(f"it must be {phrase}")
        return line.strip()
    return line


def _json(_field: Field, line: str) -> Json:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        raise NotAnAnswer("it must be JSON") from None


_READERS: Final[Mapping[Kind, Callable[[Field, str], Json]]] = MappingProxyType(
    {
        "choice": _choice,
        "choices": _several,
        "yes-no": _yes_no,
        "integer": _number,
        "number": _number,
        "text": _text,
        "json": _json,
    }
)


def _is_email(text: str) -> bool:
    return re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None


def _is_uri(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"\s", text)


def _is_date(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is not None and _parses(
        date.fromisoformat, text
    )


def _is_date_time(text: str) -> bool:
    shape = r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})"
    whole = re.fullmatch(shape, text, re.ASCII)
    fraction = whole.group(1) if whole else None
    return whole is not None and _parses(datetime.fromisoformat, text.upper().replace(fraction or "", "", 1))


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


_FORMATS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = MappingProxyType(
    {
        "email": (_is_email, "an e-mail address"),
        "uri": (_is_uri, "a URI such as https://example.com"),
        "date": (_is_date, "a date such as 2026-12-31"),
        "date-time": (_is_date_time, "a time such as 2026-12-31T23:59:00Z"),
    }
)
