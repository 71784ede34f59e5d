"""What a server offers, as it listed it: identity, capabilities and the entries of its lists. SPEC §prepare.

Entries stay the JSON bytes of what the server sent, so that JSON Schema keywords survive to the letter and an idle
attachment stays small. Which of the tools may be called is ``policy``'s decision.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.core.json_value import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Entry:
    """One well-formed entry of a list: its name (a resource's or template's uri) and its JSON object as bytes."""

    name: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Judgement:
    """What ``policy`` finds of one tool by itself, which takes long enough to be done ahead and in turns."""

    fault: str | None
    """The reason code why it cannot be offered, or None."""
    canonical: bytes
    """Its entry as canonical JSON, for the revision."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """One entry that is not published, and the reason code why. ``name`` is ``#<index>`` where it has none."""

    name: str
    reason: str
    method: str = "tools/list"
    """The list it stood in."""


@dataclass(frozen=True, slots=True)
class ServerCatalog:
    """The verified answer to ``server/discover`` and every list, drained to the end."""

    protocol_version: str
    server_info: Mapping[str, Json] | None
    """``{name, version, title?}`` as the server reports itself, or None where it does not."""
    capabilities: JsonObject
    instructions: str | None
    tools: tuple[Entry, ...] = ()
    resources: tuple[Entry, ...] = ()
    resource_templates: tuple[Entry, ...] = ()
    prompts: tuple[Entry, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    """Malformed entries of any list, in listed order. Policy adds the tools it withholds."""
    cache_control: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """List method to ``(ttlMs, cacheScope)`` as the server gave it."""
    judged: Mapping[str, Judgement] = field(default_factory=dict, repr=False)
    """The judgement of each tool that was judged ahead; policy judges the others itself."""

    def offers(self, capability: str) -> bool:
        """Return whether the server declared the capability, for example ``prompts``."""
        return isinstance(self.capabilities.get(capability), dict)
