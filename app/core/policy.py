"""Which tools of a catalog may be called, and with which effect. SPEC §policy, §prepare."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Effect(StrEnum):
    """What calling a tool needs: nothing, or a person's consent. SPEC §policy."""

    READ = "read"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class Tool:
    """One enabled tool."""

    name: str
    effect: Effect
    raw: bytes
    """The entry of ``tools/list`` as the server sent it."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The exact enabled tools of a server, by exact name, in listed order."""

    tools: Mapping[str, Tool]
    revision: str
    """SHA-256, in hex, of the canonical JSON (RFC 8785) of the enabled tools."""
