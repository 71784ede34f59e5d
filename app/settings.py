"""Settings: every ``PLURNK_*`` variable but the server defaults, typed. SPEC §settings, §limits.

Takes the merged mapping of ``environment`` and returns a value; durations end in ``_ms``, sizes are bytes.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from app.core.references import OWN_PREFIX
from app.setting_values import (
    KEYWORD,
    BindAddress,
    Commands,
    CountOrZero,
    DatabaseUrl,
    HostHeaders,
    HostsRule,
    NamePatterns,
    Origins,
    Port,
    PositiveInt,
    ProxyUrl,
    Token,
    is_loopback_bind,
    is_name_pattern_of,
)

MIB = 1024 * 1024
TOKEN_NONE = "none"  # noqa: S105 the word that says there is no token


def _env(name: str, default: Any) -> Any:
    """Declare a setting by its variable's name and its default."""
    return Field(default=default, alias=name)


def _secret(name: str) -> Any:
    """Declare a setting whose value is never printed."""
    return Field(default=None, alias=name, repr=False)


class Settings(BaseModel):
    """What the operator decided. Field order is the order of ``.env.defaults``."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, hide_input_in_errors=True)

    host: BindAddress = _env("PLURNK_HOST", "127.0.0.1")
    port: Port = _env("PLURNK_PORT", 3044)
    home: str | None = _env("PLURNK_HOME", None)
    token: Token | None = _secret("PLURNK_TOKEN")
    database_url: DatabaseUrl | None = _secret("PLURNK_DATABASE_URL")
    log_level: Annotated[Literal["debug", "info", "warning", "error"], KEYWORD] = _env(
        "PLURNK_LOG_LEVEL", "info"
    )
    log_format: Annotated[Literal["console", "json"], KEYWORD] = _env("PLURNK_LOG_FORMAT", "console")
    allowed_hosts: HostHeaders = _env("PLURNK_ALLOWED_HOSTS", ())
    allowed_origins: Origins = _env("PLURNK_ALLOWED_ORIGINS", ())

    references: NamePatterns = _env("PLURNK_REFERENCES", ("*",))
    stdio_policy: Annotated[Literal["any", "defaults", "off"], KEYWORD] = _env("PLURNK_STDIO_POLICY", "any")
    stdio_commands: Commands | None = _env("PLURNK_STDIO_COMMANDS", None)
    http_hosts: HostsRule = _env("PLURNK_HTTP_HOSTS", "any")
    http_proxy: ProxyUrl | None = _secret("PLURNK_HTTP_PROXY")
    ca_file: str | None = _env("PLURNK_CA_FILE", None)

    host_effect: Annotated[Literal["review", "allow"], KEYWORD] = _env("PLURNK_HOST_EFFECT", "review")
    hydration: Annotated[Literal["strict", "isolate"], KEYWORD] = _env("PLURNK_HYDRATION", "strict")
    hydrate: Annotated[Literal["lazy", "eager"], KEYWORD] = _env("PLURNK_HYDRATE", "lazy")

    connect_timeout_ms: PositiveInt = _env("PLURNK_MCP_CONNECT_TIMEOUT", 30_000)
    request_timeout_ms: PositiveInt = _env("PLURNK_MCP_REQUEST_TIMEOUT", 86_400_000)
    proposal_timeout_ms: PositiveInt = _env("PLURNK_PROPOSAL_TIMEOUT", 3_600_000)
    workspace_idle_ms: CountOrZero = _env("PLURNK_WORKSPACE_IDLE", 1_800_000)
    shutdown_timeout_ms: PositiveInt = _env("PLURNK_SHUTDOWN_TIMEOUT", 10_000)

    max_message: PositiveInt = _env("PLURNK_MAX_MESSAGE", 16 * MIB)
    max_result: PositiveInt = _env("PLURNK_MAX_RESULT", 4 * MIB)
    max_catalog_entries: PositiveInt = _env("PLURNK_MAX_CATALOG_ENTRIES", 10_000)
    max_catalog_bytes: PositiveInt = _env("PLURNK_MAX_CATALOG_BYTES", 32 * MIB)
    max_schema_depth: PositiveInt = _env("PLURNK_MAX_SCHEMA_DEPTH", 64)
    max_schema_nodes: PositiveInt = _env("PLURNK_MAX_SCHEMA_NODES", 10_000)
    max_servers: PositiveInt = _env("PLURNK_MAX_SERVERS", 100)
    max_workspaces: PositiveInt = _env("PLURNK_MAX_WORKSPACES", 10_000)
    max_workspace_operations: PositiveInt = _env("PLURNK_MAX_WORKSPACE_OPERATIONS", 64)
    max_operations: PositiveInt = _env("PLURNK_MAX_OPERATIONS", 1000)
    max_preparations: PositiveInt = _env("PLURNK_MAX_PREPARATIONS", 256)
    max_body: PositiveInt = _env("PLURNK_MAX_BODY", 4 * MIB)
    max_pending: PositiveInt = _env("PLURNK_MAX_PENDING", 100)
    max_streams: PositiveInt = _env("PLURNK_MAX_STREAMS", 1000)
    max_listens: PositiveInt = _env("PLURNK_MAX_LISTENS", 1000)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Return the settings that the merged mapping gives.

        Raises:
            ValidationError: pydantic's; ``faults`` turns it into lines without values.
        """
        return cls.model_validate({name: environment[name] for name in VARIABLES if name in environment})

    @property
    def is_loopback(self) -> bool:
        """Whether the bind address is reachable from this machine only."""
        return is_loopback_bind(self.host)

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return self.token == TOKEN_NONE

    def may_reference(self, name: str) -> bool:
        """Whether a workspace may reference this variable; the daemon's own never. SPEC §references."""
        if name.startswith(OWN_PREFIX):
            return False
        return any(is_name_pattern_of(pattern, name) for pattern in self.references)


VARIABLES: tuple[str, ...] = tuple(str(field.alias) for field in Settings.model_fields.values())
"""The name of every setting, in the order of ``.env.defaults``."""


def faults(error: ValidationError) -> list[str]:
    """Return one line for each faulty variable, without its value."""
    return [f"{fault['loc'][0]}: {_message(fault)}" for fault in error.errors(include_input=False)]


def _message(fault: ErrorDetails) -> str:
    context = fault.get("ctx", {})
    match fault["type"]:
        case "greater_than_equal":
            return f"must be at least {context['ge']}"
        case "less_than_equal":
            return f"must be at most {context['le']}"
        case "literal_error":
            return f"must be {context['expected']}"
        case "value_error":
            return fault["msg"].removeprefix("Value error, ")
        case _:
            return fault["msg"]
