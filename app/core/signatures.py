"""One deterministic line that says what a tool takes, out of its input schema. SPEC §addresses.

JSON-shaped: ``{"title": string, "labels"?: string[], "state"?: "open" | "closed"}``. Quoted property names in
schema order, ``?`` on optional ones, primitive words, literals for ``const`` and ``enum``, ``|`` for
alternatives, ``&`` for what holds together, ``[string]: T`` for other properties (those of any name and kind
only where the schema says so or names none), ``any`` where everything goes, ``never`` where nothing does.
``…`` stands for what is left out: recursion, and all that is beyond the bounds, of which the deepest goes first
and the name of a required property last. Only words of the schema are shown; no value is invented, no default
applied. Conditions (``if``, ``not``, ``pattern``, ranges) have no form here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from app.core.json_value import Json, JsonObject
from app.core.printable_json import printable_json
from app.core.schema_keywords import Path, resolve

LENGTH_MAX: Final = 16_384
"""Characters that no signature is longer than."""

_NODES_MAX = 300
_ROOM = 3_000
"""Characters for names and literals."""
_LEVELS = (12, 8, 5, 3, 2, 1)
"""How deep a schema is shown: as deep as fits, so that no subtree takes the room of what stands above it."""
_MEMBERS_MAX = 64
_ALTERNATIVES_MAX = 16
_LITERALS_MAX = 64
_LITERALS_ROOM = 800
"""Characters for the literals of one ``enum``."""
_LITERAL_MAX = 120

_WORDS = frozenset({"string", "number", "integer", "boolean", "null"})
_OBJECT_KEYWORDS = frozenset(
    {"properties", "required", "additionalProperties", "patternProperties", "unevaluatedProperties"}
)
_ARRAY_KEYWORDS = frozenset({"items", "prefixItems", "additionalItems"})


class _Binding(IntEnum):
    """How tightly a text holds together."""

    UNION = 0
    INTERSECTION = 1
    ATOM = 2


@dataclass(frozen=True, slots=True)
class _Text:
    """A piece of a signature."""

    text: str
    binding: _Binding = _Binding.ATOM

    def within(self, binding: _Binding) -> str:
        """Return the text for a place that binds like this, in parentheses where it would fall apart."""
        return self.text if self.binding >= binding else f"({self.text})"


_ANY = _Text("any")
_NEVER = _Text("never")
_OMITTED = _Text("…")
_EMPTY = _Text("{}")
_OPEN = _Text("{[string]: any}")
_FOLDED = _Text("{…}")


def signature(input_schema: JsonObject) -> str:
    """Return the signature of a tool with this input schema: one line, at most ``LENGTH_MAX`` characters."""
    text = ""
    for levels in _LEVELS:
        printer = _Printer(input_schema, levels)
        text = printer.of(input_schema, 0).text
        if not printer.is_cut:
            break
    return text


class _Printer:
    """Prints one schema; what it may still print shrinks as it goes."""

    def __init__(self, root: JsonObject, levels: int) -> None:
        self.is_cut = False
        """Whether the room did not do for all that these levels have."""
        self._root = root
        self._levels = levels
        self._nodes = _NODES_MAX
        self._room = _ROOM
        self._open: set[Path] = set()

    def of(self, schema: Json, level: int) -> _Text:
        """Return the text of a schema at this level of nesting."""
        if not isinstance(schema, dict):
            return _NEVER if schema is False else _ANY
        if level > self._levels:
            return _OMITTED
        if self._nodes == 0:
            self.is_cut = True
            return _OMITTED
        self._nodes -= 1
        return _intersection(self._parts(schema, level))

    def _parts(self, schema: JsonObject, level: int) -> Iterator[_Text]:
        """Yield what holds together of one schema."""
        if _is_never(schema.get("not")):
            yield _NEVER
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                yield self._reference(schema[keyword], level)
        if not _is_told_by_literals(schema):
            yield self._own(schema, level)
        for each in _listed(schema, "allOf"):
            yield self.of(each, level + 1)
        for keyword in ("anyOf", "oneOf"):
            alternatives = _listed(schema, keyword)
            if alternatives:
                yield _union(self._bounded(alternatives, level))

    def _bounded(self, alternatives: list[Json], level: int) -> Iterator[_Text]:
        for each in alternatives[:_ALTERNATIVES_MAX]:
            yield self.of(each, level + 1)
        if len(alternatives) > _ALTERNATIVES_MAX:
            yield _OMITTED

    def _reference(self, reference: Json, level: int) -> _Text:
        """Return what a reference leads to; ``…`` where it leads back, ``any`` where it leads elsewhere."""
        found = resolve(self._root, reference)
        if found is None:
            return _ANY
        path, target = found
        if path in self._open or path == ():
            return _OMITTED
        self._open.add(path)
        text = self.of(target, level + 1)
        self._open.discard(path)
        return text

    def _own(self, schema: JsonObject, level: int) -> _Text:
        if "const" in schema:
            return self._literal(schema["const"])
        values = schema.get("enum")
        if isinstance(values, list):
            return _union(self._literals(values)) if values else _NEVER
        return _union(self._of_type(name, schema, level) for name in _types(schema))

    def _literals(self, values: list[Json]) -> Iterator[_Text]:
        room = _LITERALS_ROOM
        for value in values[:_LITERALS_MAX]:
            literal = self._literal(value)
            room -= len(literal.text)
            if room < 0:
                break
            yield literal
        if room < 0 or len(values) > _LITERALS_MAX:
            yield _OMITTED

    def _literal(self, value: Json) -> _Text:
        text = printable_json(value)
        if len(text) > _LITERAL_MAX or not self._has_room(text):
            return _OMITTED
        return _Text(self._taken(text))

    def _has_room(self, text: str) -> bool:
        has = len(text) <= self._room
        self.is_cut = self.is_cut or not has
        return has

    def _taken(self, text: str) -> str:
        self._room -= len(text)
        return text

    def _of_type(self, name: str, schema: JsonObject, level: int) -> _Text:
        match name:
            case "object" if level == self._levels and (schema.get("properties") or schema.get("required")):
                return _FOLDED
            case "object":
                return _Text("{" + ", ".join(self._members(schema, level)) + "}")
            case "array":
                return self._array(schema, level)
            case _:
                return _Text(name) if name in _WORDS else _ANY

    def _members(self, schema: JsonObject, level: int) -> Iterator[str]:
        properties, required = schema.get("properties"), _listed(schema, "required")
        members = dict(properties) if isinstance(properties, dict) else {}
        needed = dict.fromkeys(name for name in required if isinstance(name, str))
        members.update({name: True for name in needed if name not in members})
        names = list(self._names(_shown(members, needed)))
        for name, quoted in names:
            mark = "" if name in needed else "?"
            yield f"{quoted}{mark}: {self.of(members[name], level + 1).text}"
        if len(names) < len(members):
            yield _OMITTED.text
        yield from self._other_members(schema, level)

    def _names(self, names: list[str]) -> Iterator[tuple[str, str]]:
        """Yield each name, quoted, while there is room: all of them take theirs before what they are the names of."""
        for name in names:
            quoted = printable_json(name)
            if not self._has_room(quoted):
                return
            yield name, self._taken(quoted)

    def _other_members(self, schema: JsonObject, level: int) -> Iterator[str]:
        patterned = schema.get("patternProperties")
        others = list(patterned.values()) if isinstance(patterned, dict) else []
        additional = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
        if isinstance(additional, dict) or additional is True:
            others.append(additional)
        elif level and additional is None and not others and _names_none(schema):
            others.append(True)
        if others:
            yield f"[string]: {_union(self._bounded(others, level)).text}"

    def _array(self, schema: JsonObject, level: int) -> _Text:
        items = schema.get("items")
        prefix, rest = _listed(schema, "prefixItems"), items
        if isinstance(items, list):
            prefix, rest = items, schema.get("additionalItems")
        if not prefix:
            return _Text(f"{self.of(rest, level + 1).within(_Binding.ATOM)}[]")
        texts = [each.text for each in self._bounded(prefix, level)]
        if isinstance(rest, dict):
            texts.append(f"...{self.of(rest, level + 1).within(_Binding.ATOM)}[]")
        return _Text(f"[{', '.join(texts)}]")


def _types(schema: JsonObject) -> list[str]:
    """Return the types a schema says or implies; none where every type goes."""
    given = schema.get("type")
    if isinstance(given, str):
        return [given]
    if isinstance(given, list):
        return [name for name in given if isinstance(name, str)]
    if not _OBJECT_KEYWORDS.isdisjoint(schema):
        return ["object"]
    return [] if _ARRAY_KEYWORDS.isdisjoint(schema) else ["array"]


def _shown(members: JsonObject, needed: dict[str, None]) -> list[str]:
    """Return the names to show, in schema order: all, or as many as may be, the required ones before others."""
    if len(members) <= _MEMBERS_MAX:
        return list(members)
    chosen = set(sorted(members, key=lambda name: name not in needed)[:_MEMBERS_MAX])
    return [name for name in members if name in chosen]


def _names_none(schema: JsonObject) -> bool:
    """Return whether an object schema says nothing at all about its properties."""
    return _OBJECT_KEYWORDS.isdisjoint(schema)


def _is_never(negated: Json) -> bool:
    """Return whether ``not`` excludes everything."""
    return negated is True or negated == {}


def _is_told_by_literals(schema: JsonObject) -> bool:
    """Return whether alternatives that are literals of the schema's own type say all that the type would."""
    types = _types(schema)
    return not _WORDS.isdisjoint(types) and any(
        bool(alternatives) and all(_is_literal_of(each, types) for each in alternatives)
        for alternatives in (_listed(schema, "anyOf"), _listed(schema, "oneOf"))
    )


def _is_literal_of(schema: Json, types: list[str]) -> bool:
    if not isinstance(schema, dict):
        return False
    values = [schema["const"]] if "const" in schema else _listed(schema, "enum")
    return bool(values) and all(_is_of(value, types) for value in values)


def _is_of(value: Json, types: list[str]) -> bool:
    match value:
        case bool():
            return "boolean" in types
        case str():
            return "string" in types
        case int():
            return not {"integer", "number"}.isdisjoint(types)
        case float():
            return "number" in types
        case None:
            return "null" in types
        case _:
            return False


def _union(texts: Iterable[_Text]) -> _Text:
    distinct = list(dict.fromkeys(texts))
    if _ANY in distinct or not distinct:
        return _ANY
    if len(distinct) == 1:
        return distinct[0]
    return _Text(" | ".join(each.text for each in distinct), _Binding.UNION)


def _intersection(texts: Iterable[_Text]) -> _Text:
    distinct = [each for each in dict.fromkeys(texts) if each != _ANY]
    if not distinct:
        return _ANY
    if _NEVER in distinct:
        return _NEVER
    saying = [each for each in distinct if each not in {_EMPTY, _OPEN}] or distinct[:1]
    if len(saying) == 1:
        return saying[0]
    return _Text(" & ".join(each.within(_Binding.INTERSECTION) for each in saying), _Binding.INTERSECTION)


def _listed(schema: JsonObject, keyword: str) -> list[Json]:
    listed = schema.get(keyword)
    return listed if isinstance(listed, list) else []
