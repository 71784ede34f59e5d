"""Shapes of closed JSON objects: one table gives the faults of a value and its JSON Schema. SPEC §definition.

Knows nothing of servers. All faults are collected, each a JSON Pointer and the end of a sentence; a value
is never quoted. Only the members a shape names are looked into, so depth and size of the rest do not matter.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never, cast

from app.core.json_value import Json, JsonObject
from app.core.text_rules import TextRule, lone_surrogate_fault

Fault: TypeAlias = tuple[str, str]
"""A JSON Pointer and what is wrong there."""

NAME_SHOWN_MAX = 128
"""Characters of a member's name that a fault shows."""
_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Constant:
    """Exactly this text."""

    value: str


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    rule: TextRule


@dataclass(frozen=True, slots=True)
class TextArray:
    """An array of strings."""

    rule: TextRule
    is_set: bool = False
    """Whether no string may stand in it twice."""


@dataclass(frozen=True, slots=True)
class TextMap:
    """An object of strings."""

    names: TextRule
    values: TextRule


@dataclass(frozen=True, slots=True)
class Choice:
    """An object in one of several shapes, told apart by ``member`` and then by the members they have."""

    member: str
    shapes: tuple["Shape", ...]


Kind: TypeAlias = Constant | Text | TextArray | TextMap | Choice


@dataclass(frozen=True, slots=True)
class Shape:
    """A closed object, whose members have names that a JSON Pointer shows as they are."""

    title: str
    """As in "is not a member of …"."""
    required: Mapping[str, Kind]
    optional: Mapping[str, Kind]

    members: Mapping[str, Kind] = field(init=False)
    """Every member by name, the required ones first."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", {**self.required, **self.optional})


def pointer_to(*path: str | int) -> str:
    """Return the JSON Pointer of a path; long names cut, control characters and lone surrogates replaced."""
    return "".join(f"/{_token(str(step))}" for step in path)


def _token(step: str) -> str:
    shown = step if len(step) <= NAME_SHOWN_MAX else f"{step[:NAME_SHOWN_MAX]}…"
    return _UNSHOWABLE.sub("\ufffd", shown).replace("~", "~0").replace("/", "~1")


def faults(kind: Kind | Shape, value: object, pointer: str = "") -> Iterator[Fault]:
    """Yield every fault of the value as it stands at the pointer."""
    match kind:
        case Constant():
            if value != kind.value:
                yield pointer, f"must be '{kind.value}'"
        case Text():
            yield from _text_faults(kind.rule, value, pointer)
        case TextArray():
            yield from _array_faults(kind, value, pointer)
        case TextMap():
            yield from _map_faults(kind, value, pointer)
        case Choice():
            yield from _choice_faults(kind, value, pointer)
        case Shape():
            yield from _shape_faults(kind, value, pointer)
        case _:
            assert_never(kind)


def _text_faults(rule: TextRule, value: object, pointer: str) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield pointer, "must be a string"
    elif fault := _any_text_fault(value) or rule.fault(value):
        yield pointer, fault


def _any_text_fault(text: str) -> str | None:
    return "must not contain a NUL character" if "\0" in text else lone_surrogate_fault(text)


def _array_faults(kind: TextArray, value: object, pointer: str) -> Iterator[Fault]:
    if not isinstance(value, list | tuple):
        yield pointer, "must be an array of strings"
        return
    first: dict[str, int] = {}
    for index, item in enumerate(cast("Sequence[object]", value)):
        here = f"{pointer}/{index}"
        yield from _text_faults(kind.rule, item, here)
        if kind.is_set and isinstance(item, str) and first.setdefault(item, index) != index:
            yield here, f"is the same as {pointer}/{first[item]}"


def _map_faults(kind: TextMap, value: object, pointer: str) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield pointer, "must be an object of strings"
        return
    for name, item in cast("dict[object, object]", value).items():
        here = pointer + pointer_to(str(name))
        yield from _text_faults(kind.names, name, here)
        yield from _text_faults(kind.values, item, here)


def _choice_faults(choice: Choice, value: object, pointer: str) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield pointer, "must be an object"
        return
    given = cast("dict[object, object]", value)
    candidates = [
        shape for shape in choice.shapes if _constant(shape, choice.member) == given.get(choice.member)
    ]
    if not candidates:
        yield from _unchosen_faults(choice, given, pointer)
    else:
        yield from _shape_faults(_nearest(candidates, given), given, pointer)


def _unchosen_faults(choice: Choice, given: Mapping[object, object], pointer: str) -> Iterator[Fault]:
    """Yield the fault of the member that decides, and those of the rest as the likeliest shape judges."""
    values = list(dict.fromkeys(_constant(shape, choice.member) for shape in choice.shapes))
    listed = " or ".join(f"'{each}'" for each in values)
    is_missing = choice.member not in given
    yield pointer + pointer_to(choice.member), f"{'is required: ' if is_missing else 'must be '}{listed}"
    shape = _nearest(choice.shapes, given)
    yield from _shape_faults(shape, {**given, choice.member: _constant(shape, choice.member)}, pointer)


def _constant(shape: Shape, member: str) -> str:
    kind = shape.required[member]
    if not isinstance(kind, Constant):
        raise TypeError(f"{shape.title} has no constant '{member}' to be chosen by")
    return kind.value


def _nearest(shapes: Sequence[Shape], given: Mapping[object, object]) -> Shape:
    """Return the shape that shares most members with the value; the earlier one where several do."""
    return max(
        shapes, key=lambda shape: (sum(name in given for name in shape.members), -_missing(shape, given))
    )


def _missing(shape: Shape, given: Mapping[object, object]) -> int:
    return sum(name not in given for name in shape.required)


def _shape_faults(shape: Shape, value: object, pointer: str) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield pointer, "must be an object"
        return
    given = cast("dict[object, object]", value)
    for name, kind in shape.members.items():
        if name in given:
            yield from faults(kind, given[name], f"{pointer}/{name}")
        elif name in shape.required:
            yield f"{pointer}/{name}", "is required"
    for name in given:
        if name not in shape.members:
            yield pointer + pointer_to(str(name)), f"is not a member of {shape.title}"


def schema(kind: Kind | Shape) -> JsonObject:
    """Return the JSON Schema (2020-12) of a kind or shape; it says what a schema can say."""
    match kind:
        case Constant():
            return {"const": kind.value}
        case Text():
            return _text_schema(kind.rule)
        case TextArray():
            unique: JsonObject = {"uniqueItems": True} if kind.is_set else {}
            return {"type": "array", "items": _text_schema(kind.rule), **unique}
        case TextMap():
            return {
                "type": "object",
                "propertyNames": {"pattern": kind.names.pattern},
                "additionalProperties": _text_schema(kind.values),
            }
        case Choice():
            return {"oneOf": [schema(shape) for shape in kind.shapes]}
        case Shape():
            properties: JsonObject = {name: schema(member) for name, member in kind.members.items()}
            required: list[Json] = list(kind.required)
            return {
                "title": kind.title,
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            }
        case _:
            assert_never(kind)


def _text_schema(rule: TextRule) -> JsonObject:
    return {"type": "string", "description": rule.description, "pattern": rule.pattern}
