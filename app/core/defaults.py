"""Service defaults: the servers that the operator names in ``PLURNK_MCP_*`` variables. SPEC §defaults.

Takes the merged environment. A default becomes the same JSON that an attach would carry and goes through the
same parser, so one set of rules serves both. A fault is one line that names the variable, never its value.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.core.definitions import HttpDefinition, StdioDefinition, parse_definition
from app.core.json_value import Json, JsonObject
from app.core.names import server_name_fault
from app.core.problem import Problem
from app.core.problems import DefinitionInvalid, ReferenceMissing
from app.core.references import FieldKind, ReferenceField, expand_field, unrestricted
from app.core.shapes import Fault

PREFIX = "PLURNK_MCP_"
NOT_SERVERS = frozenset({"PLURNK_MCP_CONNECT_TIMEOUT", "PLURNK_MCP_REQUEST_TIMEOUT"})

Definition = StdioDefinition | HttpDefinition


@dataclass(frozen=True, slots=True)
class _Companion:
    """What a companion variable gives to its server's definition."""

    member: str
    transport: str | None
    """The one transport it belongs to; None for both."""
    is_json: bool = True


_COMPANIONS = {
    "ARGS": _Companion("args", "stdio"),
    "CWD": _Companion("cwd", "stdio", is_json=False),
    "ENV": _Companion("env", "stdio"),
    "HEADERS": _Companion("headers", "http"),
    "BEARER": _Companion("authorization", "http", is_json=False),
    "TOOLS": _Companion("tools", None),
    "READ": _Companion("read", None),
}
_SUFFIXES = " ".join(f"_{suffix}" for suffix in _COMPANIONS)
_URL = re.compile(r"\s*https?://", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(slots=True)
class _Group:
    """The variables of one server, gathered under its folded name."""

    server: str | None = None
    """The variable that gives the URL or executable."""
    companions: dict[str, str] = field(default_factory=dict[str, str])
    """Variable by suffix."""


def parse_defaults(environment: Mapping[str, str]) -> tuple[dict[str, Definition], list[str]]:
    """Return the service defaults by name, sorted, and one line for each fault of any variable.

    A server with a fault is left out; the caller refuses to start when there is any fault.
    """
    names = sorted(name for name in environment if name.startswith(PREFIX) and name not in NOT_SERVERS)
    faults: list[str] = []
    groups = _grouped(names, faults)
    definitions: dict[str, Definition] = {}
    for name, group in sorted(groups.items()):
        if group.server is None:
            faults += _orphans(name, group)
            continue
        found = len(faults)
        definition = _definition(name, group.server, group.companions, environment, faults)
        if definition is not None and len(faults) == found:
            definitions[name] = definition
    return definitions, faults


def _grouped(names: Iterable[str], faults: list[str]) -> dict[str, _Group]:
    groups: dict[str, _Group] = {}
    for variable in names:
        server, underscore, suffix = variable.removeprefix(PREFIX).partition("_")
        if fault := _name_fault(server):
            faults.append(_line(variable, f"names no server: {fault}"))
        elif underscore and suffix not in _COMPANIONS:
            faults.append(_line(variable, _unknown(suffix)))
        else:
            _put(groups.setdefault(server.lower(), _Group()), variable, suffix, faults)
    return groups


def _name_fault(server: str) -> str | None:
    # Outside ASCII lower() may yield ASCII, as for the Kelvin sign: two spellings of one name nobody meant.
    return server_name_fault(server.lower()) if server.isascii() else server_name_fault(server)


def _put(group: _Group, variable: str, suffix: str, faults: list[str]) -> None:
    other = group.companions.get(suffix) if suffix else group.server
    if other is not None:
        faults.append(
            _line(variable, f"is the same as {shown_variable(other)}, but for case; keep one of them")
        )
    elif suffix:
        group.companions[suffix] = variable
    else:
        group.server = variable


def _unknown(suffix: str) -> str:
    if suffix.upper() in _COMPANIONS:
        return f"is no companion: companions are in upper case, _{suffix.upper()}"
    if suffix.rpartition("_")[2] in _COMPANIONS:
        return "names no server: a server name has no '_' (use a hyphen)"
    return f"is neither a server, whose name has no '_' (use a hyphen), nor one of the companions {_SUFFIXES}"


def _orphans(name: str, group: _Group) -> Iterator[str]:
    for variable in group.companions.values():
        yield _line(variable, f"belongs to a server '{name}', and no {PREFIX}{name} is set")


def _definition(
    name: str, variable: str, companions: Mapping[str, str], environment: Mapping[str, str], faults: list[str]
) -> Definition | None:
    value = environment[variable]
    transport = "http" if _URL.match(value) else "stdio"
    if transport == "stdio" and _OTHER_SCHEME.match(value):
        faults.append(_line(variable, "is a URL of another scheme than http or https"))
        return None
    document: JsonObject = {"name": name, "transport": transport}
    document["url" if transport == "http" else "command"] = value
    variables = {"": variable}
    for suffix, companion_variable in companions.items():
        companion = _COMPANIONS[suffix]
        if companion.transport not in {None, transport}:
            faults.append(
                _line(
                    companion_variable,
                    f"{_WRONG[transport]}, and {shown_variable(variable)} is {_IS[transport]}",
                )
            )
            continue
        variables[companion.member] = companion_variable
        text = environment[companion_variable]
        try:
            document[companion.member] = _json(text) if companion.is_json else _plain(companion, text)
        except ValueError as invalid:
            faults.append(_line(companion_variable, str(invalid)))
    return _parsed(document, variables, environment, faults)


_WRONG = {"http": "belongs to a stdio server", "stdio": "belongs to an http server"}
_IS = {"http": "a URL", "stdio": "an executable"}


def _plain(companion: _Companion, text: str) -> Json:
    return {"type": "bearer", "token": text} if companion.member == "authorization" else text


def _json(text: str) -> Json:
    """Return the JSON value of a variable.

    Raises:
        ValueError: it is none, or an object in it names a member twice; says so without the text.
    """
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except _DuplicateMemberError:
        raise ValueError("is a JSON object that has a member twice") from None
    except (ValueError, RecursionError):
        raise ValueError("is not valid JSON") from None


class _DuplicateMemberError(ValueError):
    """An object names a member twice; JSON leaves open which one counts."""


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _DuplicateMemberError
    return members


def _refuse_constant(constant: str) -> float:
    raise ValueError(constant)


def _parsed(
    document: JsonObject, variables: Mapping[str, str], environment: Mapping[str, str], faults: list[str]
) -> Definition | None:
    """Return the definition of the document, unless it or one of its references has a fault."""
    found: list[Fault] = []
    definition: Definition | None = None
    try:
        definition = parse_definition(document)
    except DefinitionInvalid as invalid:
        found += invalid.errors
    judged = {pointer for pointer, _ in found}
    for each in _reference_fields(document):
        try:
            expand_field(each, environment, server=str(document["name"]), may_reference=unrestricted)
        except Problem as problem:
            if each.pointer not in judged:
                found.append((each.pointer, _why(problem)))
    faults += [_fault_line(variables, pointer, message) for pointer, message in found]
    return definition if not found else None


_KINDS = {"args": FieldKind.ARGUMENT, "env": FieldKind.VARIABLE, "headers": FieldKind.HEADER}


def _reference_fields(document: JsonObject) -> Iterator[ReferenceField]:
    """Yield the texts with references, of a document that need not be a good definition."""
    if isinstance(cwd := document.get("cwd"), str):
        yield ReferenceField(("cwd",), cwd, FieldKind.DIRECTORY)
    if isinstance(authorization := document.get("authorization"), dict):
        token = str(authorization["token"])
        yield ReferenceField(("authorization", "token"), token, FieldKind.CREDENTIAL)
    for member, kind in _KINDS.items():
        value = document.get(member)
        items = (
            enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
        )
        for key, text in items:
            if isinstance(text, str):
                yield ReferenceField((member, key), text, kind)


def _why(problem: Problem) -> str:
    variable = problem.facts.get("variable")
    match problem:
        case DefinitionInvalid():
            return problem.errors[0][1]
        case ReferenceMissing():
            return f"references {variable}, which has no value"
        case _:
            return f"references {variable}, and no PLURNK_ variable can be referenced"


def _fault_line(variables: Mapping[str, str], pointer: str, message: str) -> str:
    """Return the line of a fault of the definition, told of the variable that the member came from."""
    member, _, rest = pointer.removeprefix("/").partition("/")
    variable = variables.get(member, variables[""])
    is_inside = rest and member != "authorization"
    return _line(variable, f"/{rest}: {message}" if is_inside else message)


def _line(variable: str, message: str) -> str:
    return f"{shown_variable(variable)}: {message}"


def shown_variable(variable: str) -> str:
    """Return the variable's name as one that cannot break a line or a terminal."""
    return variable if variable.isprintable() else ascii(variable)[1:-1]
