"""Settings: every ``PLURNK_*`` variable but the server defaults, typed. SPEC §settings, §limits.

Pure: takes the merged mapping of ``environment`` and returns a value; durations end in ``_ms``, sizes are bytes.
"""

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

MIB = 1024 * 1024


def _string_array(value: Any) -> Any:
    """Read a JSON array of strings from a variable's text."""
    if not isinstance(value, str):
        return value
    try:
        return tuple(orjson.loads(value)) if value.lstrip().startswith("[") else value
    except orjson.JSONDecodeError:
        return value


def _keyword_or_array(value: Any) -> Any:
    """Read either one keyword or a JSON array of strings."""
    return _string_array(value)


StringArray = Annotated[tuple[str, ...], BeforeValidator(_string_array)]
PositiveInt = Annotated[int, Field(ge=1, le=2**53)]


def _env(name: str, default: Any) -> Any:
    """Declare a setting by its variable's name and its default."""
    return Field(default=default, alias=name)


class Settings(BaseModel):
    """What the operator decided. Field order is the order of ``.env.defaults``."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    host: str = _env("PLURNK_HOST", "127.0.0.1")
    port: Annotated[int, Field(ge=0, le=65535)] = _env("PLURNK_PORT", 3044)
    home: str | None = _env("PLURNK_HOME", None)
    token: str | None = _env("PLURNK_TOKEN", None)
    database_url: str | None = _env("PLURNK_DATABASE_URL", None)
    log_level: Literal["debug", "info", "warning", "error"] = _env("PLURNK_LOG_LEVEL", "info")
    log_format: Literal["console", "json"] = _env("PLURNK_LOG_FORMAT", "console")
    allowed_hosts: StringArray = _env("PLURNK_ALLOWED_HOSTS", ())
    allowed_origins: StringArray = _env("PLURNK_ALLOWED_ORIGINS", ())

    references: StringArray = _env("PLURNK_REFERENCES", ("*",))
    stdio_policy: Literal["any", "defaults", "off"] = _env("PLURNK_STDIO_POLICY", "any")
    stdio_commands: StringArray | None = _env("PLURNK_STDIO_COMMANDS", None)
    http_hosts: Annotated[Literal["any", "public"] | tuple[str, ...], BeforeValidator(_keyword_or_array)] = _env(
        "PLURNK_HTTP_HOSTS", "any"
    )
    http_proxy: str | None = _env("PLURNK_HTTP_PROXY", None)
    ca_file: str | None = _env("PLURNK_CA_FILE", None)

    host_effect: Literal["review", "allow"] = _env("PLURNK_HOST_EFFECT", "review")
    hydration: Literal["strict", "isolate"] = _env("PLURNK_HYDRATION", "strict")
    hydrate: Literal["lazy", "eager"] = _env("PLURNK_HYDRATE", "lazy")

    connect_timeout_ms: PositiveInt = _env("PLURNK_MCP_CONNECT_TIMEOUT", 30_000)
    request_timeout_ms: PositiveInt = _env("PLURNK_MCP_REQUEST_TIMEOUT", 86_400_000)
    proposal_timeout_ms: PositiveInt = _env("PLURNK_PROPOSAL_TIMEOUT", 3_600_000)
    workspace_idle_ms: Annotated[int, Field(ge=0)] = _env("PLURNK_WORKSPACE_IDLE", 1_800_000)
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
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


VARIABLES: tuple[str, ...] = tuple(str(field.alias) for field in Settings.model_fields.values())
"""The name of every setting, in the order of ``.env.defaults``."""


def faults(error: ValidationError) -> list[str]:
    """Return one line for each faulty variable, without its value."""
    return [f"{fault['loc'][0]}: {fault['msg'].removeprefix('Value error, ')}" for fault in error.errors()]
