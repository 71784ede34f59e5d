"""Server definitions: the closed union of what a workspace can attach. SPEC §definition.

A definition is kept as it was sent; nothing here expands a reference (``references`` does) or resolves a name.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

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


def _authorization_arm(value: Any) -> str | None:
    """Choose the arm of the authorization union from its members, or none of them."""
    get = value.get if isinstance(value, dict) else lambda name: getattr(value, name, None)  # pyright: ignore[reportUnknownLambdaType] either shape
    match get("type"):
        case "oauth" if get("clientMetadataUrl") is not None:
            return "oauth-metadata-document"
        case "oauth" if get("clientId") is not None or get("clientSecret") is not None:
            return "oauth-pre-registered"
        case "oauth":
            return "oauth-dynamic"
        case "bearer" | "client-credentials" as kind:
            return kind
        case _:
            return None


Authorization: TypeAlias = Annotated[
    Annotated[Bearer, Tag("bearer")]
    | Annotated[OAuthMetadataDocument, Tag("oauth-metadata-document")]
    | Annotated[OAuthPreRegistered, Tag("oauth-pre-registered")]
    | Annotated[OAuthDynamic, Tag("oauth-dynamic")]
    | Annotated[ClientCredentials, Tag("client-credentials")],
    Discriminator(_authorization_arm),
]


class StdioDefinition(Closed):
    """A server that the daemon starts as a child process."""

    transport: Literal["stdio"]
    name: str
    command: str
    """One exact executable, spaces and all; never split, never given to a shell."""
    args: tuple[str, ...] = ()
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    tools: tuple[str, ...] | None = None
    """The enabled tools; None enables every listed one."""
    read: tuple[str, ...] = ()
    """The enabled tools whose effect is ``read``."""


class HttpDefinition(Closed):
    """A server that the daemon reaches over Streamable HTTP."""

    transport: Literal["http"]
    name: str
    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    authorization: Authorization | None = None
    tools: tuple[str, ...] | None = None
    read: tuple[str, ...] = ()


ServerDefinition: TypeAlias = Annotated[StdioDefinition | HttpDefinition, Field(discriminator="transport")]
"""What ``workspace.mcp.attach`` takes as ``server``."""
