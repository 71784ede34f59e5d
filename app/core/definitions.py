"""Server definitions: the closed union of what a workspace can attach. SPEC §definition.

A definition is kept as it was sent: nothing here expands a reference (``references`` does) or opens one.
``parse_definition`` is the only door: the models say what a definition holds, the shapes what is good.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Strict, Tag, TypeAdapter

from app.core.json_value import JsonObject
from app.core.names import server_name_fault
from app.core.problems import DefinitionInvalid
from app.core.shapes import (
    Choice,
    Constant,
    Fault,
    Shape,
    Text,
    TextArray,
    TextMap,
    faults,
    pointer_to,
    schema,
)
from app.core.text_rules import (
    ARGUMENT,
    AUTHORIZATION_PATTERN,
    CLIENT_ID,
    CLIENT_METADATA_URL,
    COMMAND,
    CREDENTIAL,
    DIRECTORY,
    ENVIRONMENT_NAME,
    ENVIRONMENT_VALUE,
    HEADER_NAME,
    HEADER_VALUE,
    ISSUER,
    REDIRECT_URL,
    SCOPE,
    SERVER_NAME,
    SERVER_URL,
    TOOL_NAME,
)

Texts: TypeAlias = Annotated[tuple[str, ...], Strict(strict=False)]
"""A JSON array of strings, kept immutable."""

CLOSED = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False, alias_generator=None)


class Closed(BaseModel):
    """A model that refuses unknown members and converts nothing."""

    model_config = CLOSED


class Bearer(Closed):
    """A bearer token from the environment."""

    type: Literal["bearer"]
    token: str
    """One complete ``${NAME}``."""


class OAuthMetadataDocument(Closed):
    """Interactive OAuth with a client metadata document as the client id."""

    type: Literal["oauth"]
    redirect_url: Annotated[str, Field(alias="redirectUrl")]
    client_metadata_url: Annotated[str, Field(alias="clientMetadataUrl")]
    scope: str | None = None


class OAuthPreRegistered(Closed):
    """Interactive OAuth with a client that was registered before."""

    type: Literal["oauth"]
    redirect_url: Annotated[str, Field(alias="redirectUrl")]
    client_id: Annotated[str, Field(alias="clientId")]
    client_secret: Annotated[str, Field(alias="clientSecret")]
    scope: str | None = None
    issuer: str | None = None


class OAuthDynamic(Closed):
    """Interactive OAuth with dynamic client registration only."""

    type: Literal["oauth"]
    redirect_url: Annotated[str, Field(alias="redirectUrl")]
    scope: str | None = None


class ClientCredentials(Closed):
    """OAuth client credentials, without a person."""

    type: Literal["client-credentials"]
    client_id: Annotated[str, Field(alias="clientId")]
    client_secret: Annotated[str, Field(alias="clientSecret")]
    scope: str | None = None
    issuer: str | None = None


InteractiveOAuth: TypeAlias = OAuthMetadataDocument | OAuthPreRegistered | OAuthDynamic
"""The authorizations that a person gives."""


def _authorization_arm(value: object) -> str | None:
    """Choose the arm of the authorization union from its members, or none of them."""
    if isinstance(value, Closed):
        return type(value).__name__
    if not isinstance(value, dict):
        return None
    given = cast("dict[str, object]", value)
    match given.get("type"):
        case "bearer":
            return Bearer.__name__
        case "oauth" if "clientMetadataUrl" in given:
            return OAuthMetadataDocument.__name__
        case "oauth" if "clientId" in given:
            return OAuthPreRegistered.__name__
        case "oauth":
            return OAuthDynamic.__name__
        case "client-credentials":
            return ClientCredentials.__name__
        case _:
            return None


Authorization: TypeAlias = Annotated[
    Annotated[Bearer, Tag(Bearer.__name__)]
    | Annotated[OAuthMetadataDocument, Tag(OAuthMetadataDocument.__name__)]
    | Annotated[OAuthPreRegistered, Tag(OAuthPreRegistered.__name__)]
    | Annotated[OAuthDynamic, Tag(OAuthDynamic.__name__)]
    | Annotated[ClientCredentials, Tag(ClientCredentials.__name__)],
    Discriminator(_authorization_arm),
]


class StdioDefinition(Closed):
    """A server that the daemon starts as a child process."""

    transport: Literal["stdio"]
    name: str
    command: str
    """One exact executable, spaces and all; never split, never given to a shell."""
    args: Texts = ()
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    tools: Texts | None = None
    """The enabled tools; None enables every listed one."""
    read: Texts = ()
    """The enabled tools whose effect is ``read``."""


class HttpDefinition(Closed):
    """A server that the daemon reaches over Streamable HTTP."""

    transport: Literal["http"]
    name: str
    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    authorization: Authorization | None = None
    tools: Texts | None = None
    read: Texts = ()


ServerDefinition: TypeAlias = Annotated[StdioDefinition | HttpDefinition, Field(discriminator="transport")]
"""What ``workspace.mcp.attach`` takes as ``server``."""


_TOOLS = {"tools": TextArray(TOOL_NAME, is_set=True), "read": TextArray(TOOL_NAME, is_set=True)}

_AUTHORIZATION = Choice(
    "type",
    (
        Shape("a bearer authorization", {"type": Constant("bearer"), "token": Text(CREDENTIAL)}, {}),
        Shape(
            "an oauth authorization with dynamic registration",
            {"type": Constant("oauth"), "redirectUrl": Text(REDIRECT_URL)},
            {"scope": Text(SCOPE)},
        ),
        Shape(
            "an oauth authorization with a client metadata document",
            {
                "type": Constant("oauth"),
                "redirectUrl": Text(REDIRECT_URL),
                "clientMetadataUrl": Text(CLIENT_METADATA_URL),
            },
            {"scope": Text(SCOPE)},
        ),
        Shape(
            "an oauth authorization with a pre-registered client",
            {
                "type": Constant("oauth"),
                "redirectUrl": Text(REDIRECT_URL),
                "clientId": Text(CLIENT_ID),
                "clientSecret": Text(CREDENTIAL),
            },
            {"scope": Text(SCOPE), "issuer": Text(ISSUER)},
        ),
        Shape(
            "a client-credentials authorization",
            {
                "type": Constant("client-credentials"),
                "clientId": Text(CLIENT_ID),
                "clientSecret": Text(CREDENTIAL),
            },
            {"scope": Text(SCOPE), "issuer": Text(ISSUER)},
        ),
    ),
)

_STDIO = Shape(
    "a stdio definition",
    {"transport": Constant("stdio"), "name": Text(SERVER_NAME), "command": Text(COMMAND)},
    {
        "args": TextArray(ARGUMENT),
        "cwd": Text(DIRECTORY),
        "env": TextMap(ENVIRONMENT_NAME, ENVIRONMENT_VALUE),
        **_TOOLS,
    },
)

_HTTP = Shape(
    "an http definition",
    {"transport": Constant("http"), "name": Text(SERVER_NAME), "url": Text(SERVER_URL)},
    {"headers": TextMap(HEADER_NAME, HEADER_VALUE), "authorization": _AUTHORIZATION, **_TOOLS},
)

_DEFINITION = Choice("transport", (_STDIO, _HTTP))

SCHEMA: JsonObject = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A server definition",
    **schema(_DEFINITION),
    "if": {"required": ["authorization"]},
    "then": {"properties": {"headers": {"propertyNames": {"not": {"pattern": AUTHORIZATION_PATTERN}}}}},
}
"""The JSON Schema (2020-12) of a definition. The parser also judges what no schema can say: ``read`` within
``tools``, header names that differ by case only, and the inner form of URLs."""

FAULTS_MAX = 100
"""More faults than these are counted, not listed."""

_ADAPTER: TypeAdapter[StdioDefinition | HttpDefinition] = TypeAdapter(ServerDefinition)


def parse_definition(value: object) -> StdioDefinition | HttpDefinition:
    """Return the definition that a JSON value holds.

    Raises:
        DefinitionInvalid: with every fault by JSON Pointer; names the server where its name is a good one.
    """
    found = [*faults(_DEFINITION, value)]
    if isinstance(value, dict):
        found += _faults_between_members(cast("dict[str, object]", value))
    if found:
        raise DefinitionInvalid(_bounded(found), server=_server_name(value))
    return _ADAPTER.validate_python(value)


def _bounded(found: Sequence[Fault]) -> Sequence[Fault]:
    if len(found) <= FAULTS_MAX:
        return found
    return [*found[:FAULTS_MAX], ("", f"has {len(found) - FAULTS_MAX} more faults")]


def _server_name(value: object) -> str | None:
    name = cast("dict[str, object]", value).get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) and server_name_fault(name) is None else None


def _faults_between_members(value: Mapping[str, object]) -> Iterator[Fault]:
    tools, read = value.get("tools"), value.get("read")
    if isinstance(tools, list | tuple) and isinstance(read, list | tuple):
        enabled = [tool for tool in cast("Sequence[object]", tools) if isinstance(tool, str)]
        yield from _read_faults(frozenset(enabled), cast("Sequence[object]", read))
    if isinstance(headers := value.get("headers"), dict):
        names = [name for name in cast("dict[object, object]", headers) if isinstance(name, str)]
        yield from _header_faults(names, has_authorization="authorization" in value)


def _read_faults(enabled: frozenset[str], read: Sequence[object]) -> Iterator[Fault]:
    for index, tool in enumerate(read):
        if isinstance(tool, str) and tool not in enabled:
            yield pointer_to("read", index), "is not among the enabled tools of /tools"


def _header_faults(names: Sequence[str], *, has_authorization: bool) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for name in names:
        here = pointer_to("headers", name)
        if first.setdefault(name.lower(), name) != name:
            yield here, f"is the same header as {pointer_to('headers', first[name.lower()])}"
        if has_authorization and name.lower() == "authorization":
            yield here, "must not stand beside authorization, which sets this header"
