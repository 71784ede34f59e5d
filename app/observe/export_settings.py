"""Whether the standard ``OTEL_*`` variables ask for traces. SPEC §observe; OpenTelemetry specification, SDK variables.

Decides only; the SDK reads the same variables of the process's environment by itself, and is not loaded before they
ask for it.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_HEADERS: Final = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
SPOKEN: Final = "http/protobuf"


class TracesRefused(Exception):
    """The daemon does not start: traces are asked for in a way that cannot work. One sentence."""


def exports_traces(process: Mapping[str, str]) -> bool:
    """Return whether traces are exported: to an endpoint that is set, over OTLP, where nothing forbids it."""
    return _is_asked_for(process) and _protocol(process) == SPOKEN


def export_warning(process: Mapping[str, str], merged: Mapping[str, str]) -> str | None:
    """Return a line about traces that are asked for and will not come."""
    if _is_asked_for(process):
        if _protocol(process) != SPOKEN:
            return f"{_PROTOCOLS[1]}: only {SPOKEN} is spoken; no traces are exported"
    elif _is_asked_for(merged):
        return "OTEL_*: is read from the process's environment only, not from .env; no traces are exported"
    return None


def header_secrets(environment: Mapping[str, str]) -> list[str]:
    """Return what authenticates the daemon to the collector, for the mask."""
    secrets: list[str] = []
    for given in filter(None, map(environment.get, _HEADERS)):
        pairs = [pair.strip() for pair in given.split(",")]
        # A value that was written without its name is a fault, and no less secret.
        values = [pair.partition("=")[2].strip() or pair for pair in pairs]
        secrets += [given, *values, *map(unquote, values)]
    return [secret for secret in secrets if secret]


def _is_asked_for(environment: Mapping[str, str]) -> bool:
    is_on = environment.get("OTEL_SDK_DISABLED", "").strip().lower() != "true"
    exporters = {each.strip() for each in (environment.get("OTEL_TRACES_EXPORTER") or "otlp").split(",")}
    return is_on and "otlp" in exporters and _first(environment, _ENDPOINTS) is not None


def _protocol(environment: Mapping[str, str]) -> str:
    return _first(environment, _PROTOCOLS) or SPOKEN


def _first(environment: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """Return the value of the first of these variables that has one."""
    values = (environment.get(name, "").strip() for name in names)
    return next(filter(None, values), None)
