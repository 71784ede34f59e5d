"""The small public state of a workspace and the changes of it, for runs and watchers. SPEC §agui.

A reader takes the snapshot and subscribes without an await between the two, so no change is missing or doubled.
Values put in are not mutated afterwards by anybody.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, TypeAlias

import structlog

from app.core.json_value import JsonObject

log = structlog.get_logger("plurnk.workspace")

Section: TypeAlias = Literal["servers", "pending", "operations", "interactions"]
Entry: TypeAlias = Callable[[], JsonObject]
"""Makes an entry, the same each time, once somebody wants to know it."""
Delta: TypeAlias = list[JsonObject]
"""RFC 6902 operations on paths below ``/plurnk``, the last of which replaces ``/plurnk/rev``."""
Listener: TypeAlias = Callable[[Delta], None]


class _Gathering:
    """The block of ``LiveState.one_change``."""

    __slots__ = ("_state",)

    def __init__(self, state: "LiveState") -> None:
        self._state = state

    def __enter__(self) -> None:
        self._state.begin_gathering()

    def __exit__(self, *_: object) -> None:
        self._state.end_gathering()


class LiveState:
    """The state object of one workspace; every change advances ``rev`` by one and reaches every listener."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self._rev = 0
        self._sections: dict[Section, dict[str, JsonObject | Entry]] = {
            "servers": {},
            "pending": {},
            "operations": {},
            "interactions": {},
        }
        self._listeners: list[Listener] = []
        self._batch: Delta = []
        self._depth = 0
        """How many blocks of ``one_change`` we are in."""

    def snapshot(self) -> JsonObject:
        """Return the value of ``plurnk`` in an AG-UI state snapshot; a copy."""
        document: JsonObject = {"workspace": self._workspace, "rev": self._rev}
        for section, entries in self._sections.items():
            document[section] = {key: entry() if callable(entry) else entry for key, entry in entries.items()}
        return document

    @property
    def has_listeners(self) -> bool:
        """Whether anybody would hear of a change."""
        return bool(self._listeners)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener, without awaiting, with every delta from now on, until the returned function is called."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def put(self, section: Section, key: str, value: JsonObject) -> None:
        """Add or replace one entry; nothing happens where it is equal already."""
        entries = self._sections[section]
        if entries.get(key) == value:
            return
        kind = "replace" if key in entries and section != "operations" else "add"
        entries[key] = value
        self._changed(kind, section, key, {"value": value})

    def add(self, section: Section, key: str, entry: Entry) -> None:
        """Add an entry, which is made only where somebody hears of it: most are gone before anybody does."""
        self._sections[section][key] = entry
        if self._listeners or self._depth:
            self._changed("add", section, key, {"value": entry()})
        else:
            self._rev += 1

    def drop(self, section: Section, key: str) -> None:
        """Remove one entry where it is present."""
        if self._sections[section].pop(key, None) is None:
            return
        if self._listeners or self._depth:
            self._changed("remove", section, key, {})
        else:
            self._rev += 1

    def one_change(self) -> AbstractContextManager[None]:
        """Gather every put and drop inside the block, which must not await, into one delta."""
        return _Gathering(self)

    def begin_gathering(self) -> None:
        """Enter one more of such blocks."""
        self._depth += 1

    def end_gathering(self) -> None:
        """Leave one; the outermost publishes what was gathered."""
        self._depth -= 1
        if not self._depth and self._batch:
            gathered, self._batch = self._batch, []
            self._publish(gathered)

    def _changed(self, kind: str, section: Section, key: str, members: JsonObject) -> None:
        if not self._listeners:  # Nobody hears of it: only that something changed is told, by the revision.
            operation: JsonObject = {}
        else:
            operation = {"op": kind, "path": f"/plurnk/{section}/{_escaped(key)}", **members}
        if self._depth:
            self._batch.append(operation)
        else:
            self._publish([operation])

    def _publish(self, operations: Delta) -> None:
        self._rev += 1
        if not self._listeners:
            return
        delta: Delta = [*operations, {"op": "replace", "path": "/plurnk/rev", "value": self._rev}]
        for listener in tuple(self._listeners):
            try:
                listener(delta)
            except Exception:  # A bug in one listener is no reason for a change not to happen.
                log.exception("listener-failed", workspace=self._workspace)


def _escaped(key: str) -> str:
    """Return the key as a JSON Pointer token. RFC 6901 §3."""
    return key.replace("~", "~0").replace("/", "~1")
