"""``${NAME}``: finding, checking and expanding references to environment variables. SPEC §references.

Takes the environment as a mapping, never the process's own. ``$${`` stands for a literal ``${``; a ``$`` that
no ``{`` follows stands for itself; every other ``${…}`` is a fault.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, assert_never

from typing_extensions import override

from app.core.definitions import (
    Bearer,
    ClientCredentials,
    HttpDefinition,
    OAuthDynamic,
    OAuthMetadataDocument,
    OAuthPreRegistered,
    StdioDefinition,
)
from app.core.problems import DefinitionInvalid, ReferenceMissing, ReferenceRefused
from app.core.reference_syntax import TOKEN, find
from app.core.shapes import pointer_to
from app.core.text_rules import control_fault

OWN_PREFIX = "PLURNK_"
"""Variables of the daemon itself; no definition ever sees one."""

MayReference: TypeAlias = Callable[[str], bool]
"""Whether the operator's settings let a definition reference a variable."""


class FieldKind(Enum):
    """What a field's expanded text is used for, which decides what it may contain."""

    ARGUMENT = auto()
    DIRECTORY = auto()
    VARIABLE = auto()
    HEADER = auto()
    CREDENTIAL = auto()


@dataclass(frozen=True, slots=True)
class ReferenceField:
    """One text of a definition in which references are allowed."""

    path: tuple[str | int, ...]
    """Where it stands: members and indices."""
    text: str
    """Unexpanded."""
    kind: FieldKind

    @property
    def pointer(self) -> str:
        """Where it stands, as a JSON Pointer that can be shown."""
        return pointer_to(*self.path)


@dataclass(frozen=True, slots=True)
class StdioExpanded:
    """What a child process is started with."""

    command: str
    args: tuple[str, ...]
    cwd: str | None
    env: Mapping[str, str]
    secrets: frozenset[str]
    """The value of every variable that was referenced; for the mask."""

    @override
    def __repr__(self) -> str:
        """Say nothing that was expanded."""
        return "StdioExpanded(…)"


@dataclass(frozen=True, slots=True)
class HttpExpanded:
    """What an HTTP connection is made with."""

    url: str
    headers: Mapping[str, str]
    bearer: str | None
    client_secret: str | None
    secrets: frozenset[str]
    """The value of every variable that was referenced; for the mask."""

    @override
    def __repr__(self) -> str:
        """Say nothing that was expanded."""
        return "HttpExpanded(…)"


Expanded: TypeAlias = StdioExpanded | HttpExpanded


def unrestricted(_name: str) -> bool:
    """Allow every name: the rule for service defaults, which are the operator's own. SPEC §references."""
    return True


def reference_fields(definition: StdioDefinition | HttpDefinition) -> Iterator[ReferenceField]:
    """Yield every text of the definition in which references are allowed, in the definition's order."""
    match definition:
        case StdioDefinition():
            for index, argument in enumerate(definition.args):
                yield ReferenceField(("args", index), argument, FieldKind.ARGUMENT)
            if definition.cwd is not None:
                yield ReferenceField(("cwd",), definition.cwd, FieldKind.DIRECTORY)
            for name, value in definition.env.items():
                yield ReferenceField(("env", name), value, FieldKind.VARIABLE)
        case HttpDefinition():
            for name, value in definition.headers.items():
                yield ReferenceField(("headers", name), value, FieldKind.HEADER)
            yield from _credentials(definition)
        case _:
            assert_never(definition)


def _credentials(definition: HttpDefinition) -> Iterator[ReferenceField]:
    match definition.authorization:
        case Bearer() as bearer:
            yield ReferenceField(("authorization", "token"), bearer.token, FieldKind.CREDENTIAL)
        case OAuthPreRegistered() | ClientCredentials() as client:
            yield ReferenceField(
                ("authorization", "clientSecret"), client.client_secret, FieldKind.CREDENTIAL
            )
        case OAuthMetadataDocument() | OAuthDynamic() | None:
            return
        case _:
            assert_never(definition.authorization)


def expand(text: str, values: Mapping[str, str]) -> str:
    """Return the text, every reference replaced and every ``$${`` unescaped; values are not expanded again.

    Raises:
        KeyError: a name that ``values`` lacks; callers look first.
    """
    return TOKEN.sub(lambda token: values[token["name"]] if token["name"] else "${", text)


def expand_field(
    field: ReferenceField, environment: Mapping[str, str], *, server: str, may_reference: MayReference
) -> str:
    """Return the field's expanded text.

    Raises:
        ReferenceRefused: the operator forbids the name, or it is one of the daemon's own.
        ReferenceMissing: the name has no value, or an empty one in a credential field.
        DefinitionInvalid: the expanded text cannot be used; names the field, never the value.
    """
    for name in find(field.text):
        if name.startswith(OWN_PREFIX) or not may_reference(name):
            raise ReferenceRefused(server=server, variable=name, field=field.pointer)
        if name not in environment or (field.kind is FieldKind.CREDENTIAL and not environment[name]):
            raise ReferenceMissing(server=server, variable=name, field=field.pointer)
    expanded = expand(field.text, environment)
    if fault := _expanded_fault(field.kind, expanded):
        raise DefinitionInvalid(
            [(field.pointer, f"after its references are expanded it {fault}")], server=server
        )
    return expanded


def _expanded_fault(kind: FieldKind, expanded: str) -> str | None:
    match kind:
        case FieldKind.HEADER | FieldKind.CREDENTIAL:
            return control_fault(expanded)
        case FieldKind.DIRECTORY if not expanded:
            return "is empty"
        case FieldKind.DIRECTORY | FieldKind.ARGUMENT | FieldKind.VARIABLE:
            return "contains a NUL character" if "\0" in expanded else None
        case _:
            assert_never(kind)


def expand_definition(
    definition: StdioDefinition | HttpDefinition, environment: Mapping[str, str], may_reference: MayReference
) -> Expanded:
    """Return what a connection is made with, every reference resolved; nothing of it may be stored or shown.

    Raises:
        ReferenceRefused: a name that may not be referenced.
        ReferenceMissing: a name without a value.
        DefinitionInvalid: a text that its expansion makes unusable, as a header that would split a request.
    """
    fields = tuple(reference_fields(definition))
    texts = {
        field.path: expand_field(field, environment, server=definition.name, may_reference=may_reference)
        for field in fields
    }
    secrets = frozenset(
        value for field in fields for name in find(field.text) if (value := environment[name])
    )
    match definition:
        case StdioDefinition():
            return StdioExpanded(
                command=definition.command,
                args=tuple(texts["args", index] for index in range(len(definition.args))),
                cwd=texts.get(("cwd",)),
                env={name: texts["env", name] for name in definition.env},
                secrets=secrets,
            )
        case HttpDefinition():
            return HttpExpanded(
                url=definition.url,
                headers={name: texts["headers", name] for name in definition.headers},
                bearer=texts.get(("authorization", "token")),
                client_secret=texts.get(("authorization", "clientSecret")),
                secrets=secrets,
            )
        case _:
            assert_never(definition)
