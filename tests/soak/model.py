"""What each workspace of a soak should be: the simple reference that the daemon is compared with. SPEC §effective.

It knows no connection and no clock: only what is durable, what may have happened unseen, and what must not be said.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from tests.soak.peers import DEFAULT

Json = dict[str, Any]
Kind: TypeAlias = Literal["attach", "replace", "detach", "reconnect", "restore"]
Entry: TypeAlias = str | None
"""A definition's canonical JSON; None for a tombstone."""

KINDS: Final[tuple[Kind, ...]] = ("attach", "replace", "detach", "reconnect", "restore")
_SHUTTING = frozenset({"shutting-down"})
_MAY_HAPPEN: Final = _SHUTTING | {"server-unavailable", "server-busy", "too-many"}
"""What a change may always end in: its server is dead, an operation is open, as many sign-ins wait as may."""
_AFTER_CALL: Final = {"server-not-connected", "server-unavailable", "tool-call-failed", "operation-cancelled"}
CALL_MAY_END: Final = _SHUTTING | _AFTER_CALL | {"authorization-refused", "operation-timeout", "too-many"}


@dataclass(frozen=True)
class Change:
    """One change that is asked for."""

    kind: Kind
    name: str
    definition: Json | None = None
    """What attach and replace send."""


@dataclass(frozen=True)
class Question:
    """An operation that waits for a person."""

    operation: str
    interrupts: tuple[Json, ...]
    text: str
    """What the call was about, as the peers write it down."""


@dataclass
class Workspace:
    """One workspace. Whoever holds its lock may change it."""

    name: str
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    """Its durable map."""
    questions: list[Question] = field(default_factory=list[Question])
    """Operations that nobody has answered yet; they die with the daemon."""
    is_pending: bool = False
    """Whether a sign-in may wait at ``guarded``."""
    life: int = 0
    """The daemon's life that the questions belong to."""

    @property
    def effective(self) -> dict[str, str]:
        """The names that are effective, and whose they are."""
        names = {name: "workspace" for name, entry in self.entries.items() if entry is not None}
        if DEFAULT not in self.entries:
            names[DEFAULT] = "service"
        return names

    @property
    def tombstones(self) -> list[str]:
        """The names that hide a default."""
        return sorted(name for name, entry in self.entries.items() if entry is None)

    def may_say(self, change: Change) -> frozenset[str]:
        """Return the codes that the change may end in, ``ok`` and ``pending`` among them."""
        is_shown = change.name in self.effective
        match change.kind:
            case "attach" if is_shown:
                return frozenset({"server-exists"}) | _SHUTTING
            case "restore" if change.name != DEFAULT:
                return frozenset({"server-not-found"}) | _SHUTTING
            case "detach" if not is_shown:
                pending = {"ok"} if self.is_pending and change.name == "guarded" else set[str]()
                return frozenset({"server-not-found"} | pending) | _SHUTTING
            case "replace" | "reconnect" if not is_shown:
                return frozenset({"server-not-found"}) | _SHUTTING
            case "detach":
                return _SHUTTING | {"ok", "server-busy"}
            case _:
                # A grant that is revoked during each of three sign-ins in a row is given up.
                ends = {"ok", "pending", "authorization-refused"} if change.name == "guarded" else {"ok"}
                return _MAY_HAPPEN | ends

    def after(self, change: Change) -> dict[str, Entry]:
        """Return the durable map once the change happened."""
        entries = dict(self.entries)
        match change.kind:
            case "attach" | "replace":
                entries[change.name] = canonical(change.definition)
            case "detach" if change.name == DEFAULT:
                entries[change.name] = None
            case "detach" | "restore":
                entries.pop(change.name, None)
            case "reconnect":
                pass
        return entries

    def adopt(self, rows: dict[str, Entry], unsure: Change) -> None:
        """Take what is durable after a change whose answer never came.

        Raises:
            AssertionError: it is neither what was before nor what the change makes of it.
        """
        assert rows in (self.entries, self.after(unsure)), (self.name, unsure, self.entries, rows)
        self.entries = rows


def canonical(definition: Json | None) -> str:
    """Return the one spelling of a definition."""
    return json.dumps(definition, sort_keys=True)
