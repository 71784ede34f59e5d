"""The small public state of a workspace and the changes of it, for runs and watchers. SPEC §agui.

A reader takes the snapshot and subscribes without an await between the two, so no change is missing or doubled.
Values put in are not mutated afterwards by anybody. What every run of a workspace is sent is encoded once for all.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias

import orjson
import structlog

from app.concurrency import Bracket
from app.core.json_value import JsonObject

log = structlog.get_logger("plurnk.workspace")

Section: TypeAlias = Literal["servers", "pending", "operations", "interactions"]
Entry: TypeAlias = Callable[[], JsonObject]
"""Makes an entry, the same each time, once somebody wants to know it."""


class Delta(list[JsonObject]):
    """RFC 6902 operations on paths below ``/plurnk``, the last of which replaces ``/plurnk/rev``."""

    __slots__ = ("began", "encoded", "maker", "operations", "revision")

    def __init__(
        self, changes: list[JsonObject], revision: int, operations: Collection[str], began: Collection[str]
    ) -> None:
        super().__init__(changes)
        self.append({"op": "replace", "path": "/plurnk/rev", "value": revision})
        self.encoded: bytes | None = None
        """What ``encode`` returned, where somebody wanted it."""
        self.revision = revision
        self.operations = operations
        """The entries of ``operations`` that it changes."""
        self.began = began
        """Those of them that were not there before."""
        self.maker = _current_task()
        """The task that made the change."""

    def encode(self) -> bytes:
        """Return the JSON of all but the last, without the brackets around them; kept for all who want it."""
        self.encoded = encoded_changes(self[:-1])
        return self.encoded


Listener: TypeAlias = Callable[[Delta], None]


def encoded_changes(changes: list[JsonObject]) -> bytes:
    """Return their JSON without the brackets around them."""
    return orjson.dumps(changes)[1:-1]


def _current_task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # No loop runs here.
        return None


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
        self._encoded: dict[Section, bytes] = {}
        """The sections that did not change since a snapshot was encoded, as members."""
        self._members: dict[str, bytes] | None = None
        """The entries of ``operations``, which change most, as members; None where somebody has to look anew."""
        self._listeners: list[Listener] = []
        self._batch: list[JsonObject] = []
        self._operations: list[str] = []
        """The operations that the batch changes."""
        self._began: list[str] = []
        """Those of them that were not there before."""
        self._depth = 0
        """How many blocks of ``one_change`` we are in."""

    def snapshot(self) -> JsonObject:
        """Return the value of ``plurnk`` in an AG-UI state snapshot; a copy."""
        document: JsonObject = {"workspace": self._workspace, "rev": self._rev}
        for section, entries in self._sections.items():
            document[section] = {key: _made(entry) for key, entry in entries.items()}
        return document

    @property
    def revision(self) -> int:
        """How often it changed."""
        return self._rev

    def encoded(self) -> bytes:
        """Return the JSON of ``snapshot``; sections that did not change are not written again."""
        cached = self._encoded
        sections = b"".join([cached.get(section) or self._encode(section) for section in self._sections])
        return b'{"workspace":"%b","rev":%d%b}' % (self._workspace.encode(), self._rev, sections)

    def _encode(self, section: Section) -> bytes:
        entries = self._sections[section]
        if section == "operations":
            if self._members is None:
                self._members = {key: _member(key, _made(entry)) for key, entry in entries.items()}
            value = b"{%b}" % b",".join(self._members.values())
        else:
            value = orjson.dumps({key: _made(entry) for key, entry in entries.items()})
        encoded = self._encoded[section] = b',"%b":%b' % (section.encode(), value)
        return encoded

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
        is_new = key not in entries
        kind = "add" if is_new or section == "operations" else "replace"
        entries[key] = value
        self._changed(kind, section, key, value, is_new=is_new)

    def add(self, section: Section, key: str, entry: Entry) -> None:
        """Add an entry, which is made only where somebody hears of it: most are gone before anybody does."""
        self._sections[section][key] = entry
        if self._listeners or self._depth:
            self._changed("add", section, key, entry(), is_new=True)
        else:
            self._rev += 1
            self._encoded.pop(section, None)
            self._members = None

    def drop(self, section: Section, key: str) -> None:
        """Remove one entry where it is present."""
        if self._sections[section].pop(key, None) is None:
            return
        if self._listeners or self._depth:
            self._changed("remove", section, key, None, is_new=False)
        else:
            self._rev += 1
            self._encoded.pop(section, None)
            self._members = None

    def one_change(self) -> AbstractContextManager[None]:
        """Gather every put and drop inside the block, which must not await, into one delta."""
        return Bracket(self.begin_gathering, self.end_gathering)

    def begin_gathering(self) -> None:
        """Enter one more of such blocks."""
        self._depth += 1

    def end_gathering(self) -> None:
        """Leave one; the outermost publishes what was gathered."""
        self._depth -= 1
        if not self._depth and self._batch:
            gathered, self._batch = self._batch, []
            self._publish(gathered)

    def _changed(
        self, kind: str, section: Section, key: str, value: JsonObject | None, *, is_new: bool
    ) -> None:
        self._encoded.pop(section, None)
        if not self._listeners:  # Nobody hears of it: only that something changed is told, by the revision.
            change: JsonObject = {}
            self._members = None
        else:
            change = {"op": kind, "path": f"/plurnk/{section}/{_escaped(key)}"}
            if value is not None:
                change["value"] = value
            if section == "operations":
                self._note_operation(key, value, is_new=is_new)
        if self._depth:
            self._batch.append(change)
        else:
            self._publish([change])

    def _note_operation(self, key: str, value: JsonObject | None, *, is_new: bool) -> None:
        self._operations.append(key)
        if is_new:
            self._began.append(key)
        if self._members is None:
            return
        if value is None:
            del self._members[key]
        else:
            self._members[key] = _member(key, value)

    def _publish(self, changes: list[JsonObject]) -> None:
        self._rev += 1
        if not self._listeners:
            return
        operations, self._operations, began, self._began = self._operations, [], self._began, []
        delta = Delta(changes, self._rev, operations, began)
        for listener in tuple(self._listeners):
            try:
                listener(delta)
            except Exception:  # A bug in one listener is no reason for a change not to happen.
                log.exception("listener-failed", workspace=self._workspace)


def _made(entry: JsonObject | Entry) -> JsonObject:
    return entry() if callable(entry) else entry


def _member(key: str, value: JsonObject) -> bytes:
    return orjson.dumps({key: value})[1:-1]


def _escaped(key: str) -> str:
    """Return the key as a JSON Pointer token. RFC 6901 §3."""
    return key.replace("~", "~0").replace("/", "~1")
