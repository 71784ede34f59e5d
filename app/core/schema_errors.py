"""Why a value breaks a schema, told without quoting the value. SPEC §problems.

Walks schema and value together, after the validator said that they do not fit, and asks it of every part: so
it follows only what is broken, does not try alternatives inside alternatives, and is bounded in steps and
errors. The validator's own list of errors grows exponentially with recursive alternatives, and copies the
values.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias
from urllib.parse import quote

import jsonschema_rs
import orjson

from app.core.json_value import Json, JsonObject
from app.core.schema_keywords import Path, resolve
from app.core.shapes import pointer_to

Error: TypeAlias = tuple[str, str]
"""A JSON Pointer into the value, and what it must be."""

ERRORS_MAX: Final = 20
_PROBES_MAX = 50_000
"""Pairs of schema and value that are looked at."""
_PARTS_MAX = 2_000
_PART_NODES_MAX = 200_000
"""Parts of the schema that are compiled, and those times its nodes."""
_LEVELS_MAX = 150
"""Levels of the walk, for Python's own stack."""
_DOCUMENT = "urn:plurnk:schema"
_SHOWN_MAX = 200
"""Characters of a schema's value that are shown."""


def _shown(value: Json) -> str:
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        return "…"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _type_phrase(value: Json) -> str:
    names = value if isinstance(value, list) else [value]
    return f"must be of type {' or '.join(str(name) for name in names)}"


def _enum_phrase(value: Json) -> str:
    return f"must be one of {_shown(value)[1:-1]}" if isinstance(value, list) else "must be one of a list"


_PHRASES: Final[Mapping[str, Callable[[Json], str]]] = MappingProxyType(
    {
        "type": _type_phrase,
        "enum": _enum_phrase,
        "const": lambda value: f"must be {_shown(value)}",
        "minimum": lambda value: f"must be at least {_shown(value)}",
        "maximum": lambda value: f"must be at most {_shown(value)}",
        "exclusiveMinimum": lambda value: f"must be greater than {_shown(value)}",
        "exclusiveMaximum": lambda value: f"must be less than {_shown(value)}",
        "multipleOf": lambda value: f"must be a multiple of {_shown(value)}",
        "minLength": lambda value: f"must have at least {_shown(value)} characters",
        "maxLength": lambda value: f"must have at most {_shown(value)} characters",
        "pattern": lambda value: f"must match the pattern {_shown(value)}",
        "minItems": lambda value: f"must have at least {_shown(value)} items",
        "maxItems": lambda value: f"must have at most {_shown(value)} items",
        "uniqueItems": lambda _: "must have no item twice",
        "minProperties": lambda value: f"must have at least {_shown(value)} properties",
        "maxProperties": lambda value: f"must have at most {_shown(value)} properties",
        "dependentRequired": lambda _: "lacks a property that another one requires",
    }
)
"""Keywords that judge a value by themselves, in the order in which they are told."""


def explain(
    schema: JsonObject, value: Json, *, nodes: int, patterns: jsonschema_rs.FancyRegexOptions
) -> list[Error]:
    """Return at least one error of a value that breaks a schema of so many nodes, at most ``ERRORS_MAX``."""
    explanation = _Explanation(schema, parts=min(_PARTS_MAX, _PART_NODES_MAX // nodes), patterns=patterns)
    explanation.of((), schema, value, ())
    return explanation.errors or [("", "does not fit the schema")]


class _Explanation:
    """One walk."""

    def __init__(self, root: JsonObject, *, parts: int, patterns: jsonschema_rs.FancyRegexOptions) -> None:
        self.errors: list[Error] = []
        self._root = root
        self._patterns = patterns
        self._dialect: JsonObject = {"$schema": root["$schema"]} if "$schema" in root else {}
        self._parts = parts
        self._probes = _PROBES_MAX
        self._open: set[tuple[Path, int]] = set()
        self._document = jsonschema_rs.Registry([(_DOCUMENT, root)], retriever=_never_retrieved)
        self._validators: dict[Path, jsonschema_rs.Validator] = {}

    def of(self, path: Path, schema: Json, value: Json, at: Path) -> None:
        """Tell why the value at a place breaks the schema at a path; nothing where it does not."""
        here = (path, id(value))
        if self._is_over() or here in self._open or self._fits(path, value):
            return
        before = len(self.errors)
        self._open.add(here)
        if isinstance(schema, dict):
            self._own(schema, value, at)
            self._members(path, schema, value, at)
            self._items(path, schema, value, at)
            self._combined(path, schema, value, at)
        self._open.discard(here)
        if len(self.errors) == before:
            self._tell(at, "is not allowed here" if schema is False else "does not fit the schema")

    def _is_over(self) -> bool:
        self._probes -= 1
        return self._probes < 0 or len(self.errors) >= ERRORS_MAX or len(self._open) > _LEVELS_MAX

    def _fits(self, path: Path, value: Json) -> bool:
        """Return whether the value fits the schema at the path; so it is said of parts beyond the bound."""
        validator = self._validators.get(path)
        if validator is None:
            if len(self._validators) >= self._parts:
                return True
            fragment = "".join(f"/{quote(_escaped(step), safe='')}" for step in path)
            validator = jsonschema_rs.validator_for(
                {**self._dialect, "$ref": f"{_DOCUMENT}#{fragment}"},
                registry=self._document,
                validate_formats=False,
                offline=True,
                pattern_options=self._patterns,
            )
            self._validators[path] = validator
        return validator.is_valid(value)

    def _tell(self, at: Path, phrase: str) -> None:
        if len(self.errors) < ERRORS_MAX:
            self.errors.append((pointer_to(*at), phrase))

    def _own(self, schema: JsonObject, value: Json, at: Path) -> None:
        for keyword, phrase in _PHRASES.items():
            if keyword in schema and not self._is_valid(schema, keyword, value):
                self._tell(at, phrase(schema[keyword]))

    def _is_valid(self, schema: JsonObject, keyword: str, value: Json) -> bool:
        alone: JsonObject = {**self._dialect, keyword: schema[keyword]}
        companion = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}.get(keyword)
        if companion is not None and isinstance(schema.get(companion), bool):
            alone[companion] = schema[companion]
        elif isinstance(schema[keyword], bool) and keyword.startswith("exclusive"):
            return True
        validator = jsonschema_rs.validator_for(
            alone, validate_formats=False, offline=True, pattern_options=self._patterns
        )
        return validator.is_valid(value)

    def _members(self, path: Path, schema: JsonObject, value: Json, at: Path) -> None:
        if not isinstance(value, dict):
            return
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str) and name not in value:
                self._tell((*at, name), "is required")
        for name, member in value.items():
            for below, subschema in self._schemas_of_member(schema, name):
                if subschema is False and below[0] == "additionalProperties":
                    self._tell((*at, name), "is not a known property")
                else:
                    self.of((*path, *below), subschema, member, (*at, name))
            if "propertyNames" in schema and not self._fits((*path, "propertyNames"), name):
                self._tell((*at, name), "has a name that is not allowed")

    def _schemas_of_member(self, schema: JsonObject, name: str) -> Iterator[tuple[Path, Json]]:
        properties, patterned = schema.get("properties"), schema.get("patternProperties")
        is_known = isinstance(properties, dict) and name in properties
        if isinstance(properties, dict) and name in properties:
            yield ("properties", name), properties[name]
        for pattern, subschema in patterned.items() if isinstance(patterned, dict) else ():
            if self._is_valid({"pattern": pattern}, "pattern", name):
                is_known = True
                yield ("patternProperties", pattern), subschema
        if not is_known and "additionalProperties" in schema:
            yield ("additionalProperties",), schema["additionalProperties"]

    def _items(self, path: Path, schema: JsonObject, value: Json, at: Path) -> None:
        if not isinstance(value, list):
            return
        keyword = "items" if isinstance(schema.get("items"), list) else "prefixItems"
        rest = "additionalItems" if keyword == "items" else "items"
        given = schema.get(keyword)
        prefix = given if isinstance(given, list) else []
        for index, item in enumerate(value):
            if index < len(prefix):
                self.of((*path, keyword, index), prefix[index], item, (*at, index))
            elif rest in schema:
                self.of((*path, rest), schema[rest], item, (*at, index))

    def _combined(self, path: Path, schema: JsonObject, value: Json, at: Path) -> None:
        found = resolve(self._root, schema.get("$ref"))
        if found is not None:
            self.of(*found, value, at)
        for index, each in enumerate(_listed(schema, "allOf")):
            self.of((*path, "allOf", index), each, value, at)
        for keyword in ("anyOf", "oneOf"):
            self._alternatives(path, keyword, _listed(schema, keyword), value, at)
        if "not" in schema and self._fits((*path, "not"), value):
            self._tell(at, "must not fit the schema under 'not'")
        if "if" in schema:
            branch = "then" if self._fits((*path, "if"), value) else "else"
            if branch in schema:
                self.of((*path, branch), schema[branch], value, at)

    def _alternatives(self, path: Path, keyword: str, schemas: list[Json], value: Json, at: Path) -> None:
        fitting = sum(1 for index in range(len(schemas)) if self._fits((*path, keyword, index), value))
        if not schemas or fitting == 1 or (fitting and keyword == "anyOf"):
            return
        if fitting:
            self._tell(at, f"must fit one of {len(schemas)} alternatives and fits {fitting}")
            return
        likely = [index for index, each in enumerate(schemas) if self._is_likely(each, value)]
        if len(likely) == 1:
            self.of((*path, keyword, likely[0]), schemas[likely[0]], value, at)
        else:
            self._tell(at, f"fits none of {len(schemas)} alternatives")

    def _is_likely(self, schema: Json, value: Json) -> bool:
        """Whether an alternative is meant, by its type and the constant members that tell it from others."""
        if not isinstance(schema, dict):
            return bool(schema)
        found = resolve(self._root, schema.get("$ref"))
        target = found[1] if found is not None and isinstance(found[1], dict) else schema
        if "type" in target and not self._is_valid(target, "type", value):
            return False
        properties = target.get("properties")
        if not isinstance(properties, dict) or not isinstance(value, dict):
            return True
        constants = {
            name: each["const"]
            for name, each in properties.items()
            if isinstance(each, dict) and "const" in each
        }
        return all(name in value and value[name] == constant for name, constant in constants.items())


def _never_retrieved(uri: str) -> Json:
    """Refuse: the schema was compiled before, so all its references lead within it."""
    raise ValueError(uri)


def _listed(schema: JsonObject, keyword: str) -> list[Json]:
    listed = schema.get(keyword)
    return listed if isinstance(listed, list) else []


def _escaped(step: str | int) -> str:
    return str(step).replace("~", "~0").replace("/", "~1")
