"""The whole configuration, read and judged before anything starts. SPEC §defaults, §settings, §security.

``serve`` and ``check`` both begin here. Every fault is found in one pass, one line each, without any value.
"""

import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from app import environment, settings, shipped
from app.core.defaults import PREFIX as SERVER_PREFIX
from app.core.defaults import Definition, parse_defaults, shown_variable
from app.core.references import OWN_PREFIX
from app.core.text_rules import lone_surrogate_fault
from app.environment import Environment
from app.observe.export_settings import export_warning, exports_traces
from app.setting_values import is_loopback_bind
from app.settings import TOKEN_NONE, VARIABLES, Settings

MUST_BE_EXPLICIT = ("PLURNK_STDIO_POLICY", "PLURNK_REFERENCES")
"""What the operator must decide before other machines can reach the daemon, beside the token."""

FAULTS_REMEDY = "Change it in the environment or in .env; .env.defaults explains every setting."
"""What helps against a fault of the configuration."""


class ConfigurationFaults(Exception):
    """The configuration cannot be used; ``lines`` names every fault, without any value."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration without faults."""

    environment: Environment
    settings: Settings
    defaults: Mapping[str, Definition]
    """The service defaults by name."""
    exports_traces: bool = False
    """Whether the process's ``OTEL_*`` variables ask for it."""
    warnings: tuple[str, ...] = ()
    """Lines about what is probably a mistake."""


def read(process: Mapping[str, str], directory: Path) -> Configuration:
    """Return the configuration that the process's environment and the directory's ``.env`` give.

    Raises:
        ConfigurationFaults: with a line for each fault.
    """
    merged = environment.load(process, directory, shipped.path(".env.defaults").read_text("utf-8"))
    lines = [*merged.faults, *_unusable_text(merged.values)]
    decided: Settings | None = None
    try:
        decided = Settings.from_environment(merged.values)
    except ValidationError as error:
        lines += settings.faults(error)
    lines += _exposure_faults(merged)
    lines += _file_faults(merged.values)
    defaults, default_faults = parse_defaults(merged.values)
    lines += default_faults
    if lines or decided is None:
        raise ConfigurationFaults(lines)
    warnings = (*_warnings(merged), *filter(None, [export_warning(process, merged.values)]))
    return Configuration(merged, decided, defaults, exports_traces(process), warnings)


def _unusable_text(values: Mapping[str, str]) -> Iterator[str]:
    for name in VARIABLES:
        value = values.get(name, "")
        if lone_surrogate_fault(value):
            yield f"{name}: is not UTF-8 text"
        elif "\0" in value:
            yield f"{name}: contains a NUL character"


def _exposure_faults(merged: Environment) -> Iterator[str]:
    """Yield what is missing before other machines may reach the daemon. SPEC §security.

    Judges the variables, not the settings, so that it also speaks when another setting is faulty.
    """
    host = merged.values.get("PLURNK_HOST", "")
    if is_loopback_bind(host):
        return
    if merged.values.get("PLURNK_TOKEN") == TOKEN_NONE:
        yield "PLURNK_TOKEN: 'none' is possible only where PLURNK_HOST is a loopback address"
    elif "PLURNK_TOKEN" not in merged.explicit:
        yield f"PLURNK_TOKEN: {_EXPOSED}"
    for name in MUST_BE_EXPLICIT:
        if name not in merged.explicit:
            yield f"{name}: {_EXPOSED}"


_EXPOSED = "must be set, because PLURNK_HOST is not a loopback address"


def _file_faults(values: Mapping[str, str]) -> Iterator[str]:
    if file := values.get("PLURNK_CA_FILE"):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
        except (OSError, ValueError):
            yield "PLURNK_CA_FILE: is no readable file of PEM certificates"


def _warnings(merged: Environment) -> Iterator[str]:
    """Yield a line for each variable that looks like a setting and is none."""
    for name in sorted(merged.explicit - {*VARIABLES}):
        if name.startswith(OWN_PREFIX) and not name.startswith(SERVER_PREFIX):
            near = get_close_matches(name, VARIABLES, n=1, cutoff=0.8)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield f"{shown_variable(name)}: is not a setting{hint}"
