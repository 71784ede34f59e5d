"""Addresses of what a model or a person can read: parsed once, and printed. SPEC §addresses.

``%XX`` decodes to UTF-8, ``+`` is a plus, and nothing is normalised, so that a resource's uri comes back byte
for byte. Whether the server exists, and offers what is asked, is for whoever reads.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never
from urllib.parse import quote, unquote_to_bytes

from app.core.names import server_name_fault
from app.core.problems import ParameterInvalid, ParameterRequired

FIELD: Final = "uri"

_DOCUMENT = re.compile(r"worker://plurnk/docs/(?P<server>[^/?#]*)\.md")
_SERVER = re.compile(r"(?P<server>[^:/?#]*):///(?P<rest>.*)", re.DOTALL)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FORMS = (
    "'<server>:///resources', '<server>:///resources/<percent-encoded uri>', '<server>:///prompts',"
    " '<server>:///prompts/<percent-encoded name>?argument=value' or 'worker://plurnk/docs/<server>.md'"
)


@dataclass(frozen=True, slots=True)
class ResourceIndex:
    """The resources and resource templates that a server lists."""

    server: str


@dataclass(frozen=True, slots=True)
class ResourceRead:
    """One resource, listed or not."""

    server: str
    uri: str


@dataclass(frozen=True, slots=True)
class PromptIndex:
    """The prompts that a server lists."""

    server: str


@dataclass(frozen=True, slots=True)
class PromptGet:
    """One prompt with its arguments."""

    server: str
    name: str
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Document:
    """The document of a server's enabled tools."""

    server: str


Address: TypeAlias = ResourceIndex | ResourceRead | PromptIndex | PromptGet | Document


def parse(uri: object) -> Address:
    """Return what the address names.

    Raises:
        ParameterRequired: no address was given.
        ParameterInvalid: it is no address; says what is wrong, without quoting it.
    """
    if uri is None:
        raise ParameterRequired(FIELD)
    if not isinstance(uri, str):
        raise ParameterInvalid(FIELD, "an address is a string")
    if document := _DOCUMENT.fullmatch(uri):
        return Document(_server(document["server"]))
    parts = _SERVER.fullmatch(uri)
    if parts is None:
        raise ParameterInvalid(FIELD, f"an address is {_FORMS}")
    return _of_server(_server(parts["server"]), parts["rest"])


def resource_address(server: str, uri: str) -> str:
    """Return the address of one resource."""
    return f"{server}:///resources/{_encoded(uri)}"


def prompt_address(server: str, name: str, arguments: Mapping[str, str] | None = None) -> str:
    """Return the address of one prompt."""
    given = "&".join(f"{_encoded(key)}={_encoded(value)}" for key, value in (arguments or {}).items())
    return f"{server}:///prompts/{_encoded(name)}" + (f"?{given}" if given else "")


def document_address(server: str) -> str:
    """Return the address of the document of a server's tools."""
    return f"worker://plurnk/docs/{server}.md"


def printed(address: Address) -> str:
    """Return the address as text; ``parse`` gives the same address back."""
    match address:
        case ResourceIndex(server):
            return f"{server}:///resources"
        case ResourceRead(server, uri):
            return resource_address(server, uri)
        case PromptIndex(server):
            return f"{server}:///prompts"
        case PromptGet(server, name, arguments):
            return prompt_address(server, name, arguments)
        case Document(server):
            return document_address(server)
        case _:
            assert_never(address)


def _server(name: str) -> str:
    if fault := server_name_fault(name):
        raise ParameterInvalid(FIELD, f"it does not begin with the name of a server: {fault}")
    return name


def _of_server(server: str, rest: str) -> Address:
    if "#" in rest:
        raise ParameterInvalid(FIELD, "a '#' in it must be written %23")
    path, mark, query = rest.partition("?")
    kind, slash, encoded = path.partition("/")
    if slash and kind == "prompts":
        return PromptGet(server, _decoded(encoded, "the prompt's name"), _arguments(query))
    if mark:
        raise ParameterInvalid(
            FIELD, "only a prompt takes arguments; a '?' of a resource's uri must be written %3F"
        )
    if slash and kind == "resources":
        return ResourceRead(server, _decoded(encoded, "the resource's uri"))
    match path:
        case "" | "resources":
            return ResourceIndex(server)
        case "prompts":
            return PromptIndex(server)
        case _:
            raise ParameterInvalid(FIELD, f"an address is {_FORMS}")


def _arguments(query: str) -> dict[str, str]:
    arguments: dict[str, str] = {}
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise ParameterInvalid(FIELD, "every argument of a prompt is written name=value")
        key = _decoded(name, "an argument's name")
        if key in arguments:
            raise ParameterInvalid(FIELD, "an argument of the prompt is given more than once")
        arguments[key] = _decoded(value, "an argument's value", may_be_empty=True)
    return arguments


def _decoded(encoded: str, what: str, *, may_be_empty: bool = False) -> str:
    if not encoded and not may_be_empty:
        raise ParameterInvalid(FIELD, f"{what} is empty")
    if _BROKEN_ESCAPE.search(encoded):
        raise ParameterInvalid(
            FIELD, f"{what} has a '%' that two hexadecimal digits do not follow; write %25"
        )
    try:
        return unquote_to_bytes(encoded).decode()
    except UnicodeError:
        raise ParameterInvalid(FIELD, f"{what} is not percent-encoded UTF-8") from None


def _encoded(text: str) -> str:
    return quote(text, safe="")
