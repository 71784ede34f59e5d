"""What may happen to a middle of the daemon, and what should then be effective. SPEC §effective."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hypothesis import strategies as st

from app.workspaces.workspace import Lease

WORKSPACES = ("v", "w")
PEERS = ("steady", "shaky")
DEFAULTS = {"d": "steady", "e": "shaky"}
NAMES = ("d", "e", "p", "q", "r")

Kind: TypeAlias = Literal["attach", "replace", "detach", "restore", "reconnect"]


@dataclass(frozen=True)
class Change:
    """One management action."""

    workspace: str
    kind: Kind
    name: str
    peer: str


@dataclass(frozen=True)
class Left:
    """A change whose client leaves after so many turns of the loop, or whose task is cancelled past every shield."""

    change: Change
    turns: int


@dataclass(frozen=True)
class Together:
    """Changes at once."""

    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Ended:
    """Changes at once, in the middle of which the daemon ends, and starts again."""

    changes: tuple[Change, ...]
    turns: int


@dataclass(frozen=True)
class Use:
    """What else happens to a workspace."""

    workspace: str
    kind: Literal["list", "lease", "release", "idle", "due"]
    name: str


@dataclass(frozen=True)
class World:
    """What happens to all of them."""

    kind: Literal["restart", "break", "mend", "store-fails", "store-works"]


Command: TypeAlias = Change | Left | Together | Ended | Use | World

KINDS: tuple[Kind, ...] = ("attach", "replace", "detach", "restore", "reconnect")


def changes(workspace: str) -> st.SearchStrategy[Change]:
    """Return any change of the workspace, an attach more often than another."""
    return st.builds(
        Change,
        st.just(workspace),
        st.sampled_from(("attach", *KINDS)),
        st.sampled_from(NAMES),
        st.sampled_from(PEERS),
    )


CHANGES = st.sampled_from(WORKSPACES).flatmap(changes)
SEVERAL = st.sampled_from(WORKSPACES).flatmap(
    lambda workspace: st.lists(changes(workspace), min_size=2, max_size=6).map(tuple)
)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    CHANGES,
    st.builds(Left, CHANGES, st.integers(0, 120)),
    st.builds(Together, SEVERAL),
    st.builds(Together, SEVERAL),
    st.builds(Ended, SEVERAL, st.integers(0, 120)),
    st.builds(
        Use,
        st.sampled_from(WORKSPACES),
        st.sampled_from(("list", "lease", "release", "idle", "due")),
        st.sampled_from(NAMES),
    ),
    st.builds(World, st.sampled_from(("restart", "break", "break", "mend", "store-fails", "store-works"))),
)


@dataclass
class Reference:
    """What should be effective: for each workspace, a peer or None (a tombstone) by name."""

    maps: dict[str, dict[str, str | None]] = field(
        default_factory=lambda: {workspace: {} for workspace in WORKSPACES}
    )
    is_shaky_up: bool = True
    is_store_up: bool = True
    leases: dict[tuple[str, str], Lease] = field(default_factory=dict[tuple[str, str], Lease])

    def effective(self, workspace: str) -> dict[str, tuple[str, str]]:
        """Return source and peer by name."""
        shown = {name: ("service", peer) for name, peer in DEFAULTS.items()}
        for name, peer in self.maps[workspace].items():
            if peer is None:
                shown.pop(name, None)
            else:
                shown[name] = ("workspace", peer)
        return shown

    def verdict(self, change: Change) -> str:
        """Return the code of the Problem that the change alone ends in, or ``ok``."""
        shown = self.effective(change.workspace)
        is_shown = change.name in shown
        match change.kind:
            case "attach" if is_shown:
                return "server-exists"
            case "restore" if change.name not in DEFAULTS:
                return "server-not-found"
            case "replace" | "detach" | "reconnect" if not is_shown:
                return "server-not-found"
            case _:
                pass
        if self._peer(change) == "shaky" and not self.is_shaky_up:
            return "server-unavailable"
        if (change.workspace, change.name) in self.leases:
            return "server-busy"
        return "ok" if self.is_store_up or change.kind == "reconnect" else "store-unavailable"

    def _peer(self, change: Change) -> str | None:
        """Return what the change connects to."""
        match change.kind:
            case "attach" | "replace":
                return change.peer
            case "restore":
                return DEFAULTS[change.name]
            case "reconnect":
                return self.effective(change.workspace)[change.name][1]
            case "detach":
                return None

    def after(self, change: Change) -> dict[str, str | None]:
        """Return the map of the workspace once the change happened."""
        after = dict(self.maps[change.workspace])
        match change.kind:
            case "attach" | "replace":
                after[change.name] = change.peer
            case "detach" if change.name in DEFAULTS:
                after[change.name] = None
            case "detach" | "restore":
                after.pop(change.name, None)
            case "reconnect":
                pass
        return after
