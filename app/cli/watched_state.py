"""The state of a workspace as the events of a run tell it: snapshots and their changes. SPEC §agui."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.core.json_value import Json, JsonObject

SECTIONS: Final = ("servers", "pending", "operations", "interactions")


@dataclass(frozen=True, slots=True)
class Change:
    """One entry that came, changed or went."""

    section: str
    key: str
    entry: JsonObject | None
    """None where it went."""


class WatchedState:
    """What a run has told of its workspace so far."""

    def __init__(self) -> None:
        self._document: JsonObject = {}

    @property
    def document(self) -> JsonObject:
        """The value of ``plurnk`` in the AG-UI state; empty before the first snapshot."""
        return self._document

    def section(self, name: str) -> Mapping[str, JsonObject]:
        """Return the entries of one section in the order of their keys."""
        return dict(sorted(_entries(self._document, name).items()))

    def take(self, event: JsonObject) -> list[Change]:
        """Return what an event changed; one that tells nothing of the state changes nothing."""
        match event.get("type"):
            case "STATE_SNAPSHOT":
                return self._replaced(event.get("snapshot"))
            case "STATE_DELTA":
                delta = event.get("delta")
                operations = (
                    [each for each in delta if isinstance(each, dict)] if isinstance(delta, list) else []
                )
                return [change for each in operations if (change := self._patched(each)) is not None]
            case _:
                return []

    def _replaced(self, snapshot: Json) -> list[Change]:
        plurnk = snapshot.get("plurnk") if isinstance(snapshot, dict) else None
        before, self._document = self._document, plurnk if isinstance(plurnk, dict) else {}
        changes: list[Change] = []
        for section in SECTIONS:
            old, new = _entries(before, section), _entries(self._document, section)
            changes += [Change(section, key, None) for key in old if key not in new]
            changes += [Change(section, key, entry) for key, entry in new.items() if old.get(key) != entry]
        return changes

    def _patched(self, operation: JsonObject) -> Change | None:
        """Apply one JSON Patch operation on an entry, or on a plain member. RFC 6902."""
        path = [_unescaped(step) for step in str(operation.get("path", "")).split("/")[2:]]
        value = operation.get("value")
        is_removed = operation.get("op") == "remove"
        match path:
            case [member]:
                if is_removed:
                    self._document.pop(member, None)
                else:
                    self._document[member] = value
                return None
            case [section, key]:
                entries = self._document.setdefault(section, {})
                if not isinstance(entries, dict):
                    return None
                entry = value if isinstance(value, dict) and not is_removed else None
                if entry is None:
                    entries.pop(key, None)
                else:
                    entries[key] = entry
                return Change(section, key, entry)
            case _:
                return None


def _entries(document: JsonObject, section: str) -> dict[str, JsonObject]:
    entries = document.get(section)
    if not isinstance(entries, dict):
        return {}
    return {key: entry for key, entry in entries.items() if isinstance(entry, dict)}


def _unescaped(step: str) -> str:
    """Return the key of a JSON Pointer token. RFC 6901 §4."""
    return step.replace("~1", "/").replace("~0", "~")
