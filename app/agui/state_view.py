"""The workspace's state as one run shows it: the snapshot, then what changed since it was shown last. SPEC §agui.

Changes are gathered in the moment they happen and told when the run writes: all that changed meanwhile is one event.
A run tells of its own operation by tool call events; its entry in the state is shown once it waits for somebody.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from app.agui.events import state_delta, state_snapshot
from app.core.json_value import JsonObject
from app.core.operation_state import OperationState
from app.workspaces.live_state import Delta, LiveState, encoded_changes

MISSED_MAX: Final = 1024
"""Changes that a run may have missed and is still told; beyond them, or ``DELTA_MAX``, a snapshot is."""
DELTA_MAX: Final = 1024 * 1024
"""Bytes of changes that one event tells."""
_OPERATIONS = "/plurnk/operations/"


class StateView:
    """What one run shows of one workspace's state. Made in the run's own task."""

    def __init__(self, state: LiveState, client_state: JsonObject) -> None:
        self.operation: str | None = None
        """The operation that the run drives, once that was told; None before there is one."""
        self.is_call = False
        """Whether that operation is a tool call."""
        self._state = state
        self._client_state = client_state
        self._task = asyncio.current_task()
        self._revision = 0
        """What was shown last."""
        self._missed: deque[Delta] = deque(maxlen=MISSED_MAX)
        """What changed since; the oldest is lost where it is too much."""
        self._hidden: set[str] = set()
        """The own operations that are in the state and not shown."""

    def follow(self) -> Callable[[], None]:
        """Miss no change from now on, until the returned function is called."""
        return self._state.subscribe(self._missed.append)

    def subscribe(self, on_change: Callable[[], None]) -> Callable[[], None]:
        """Call this, without awaiting, with every change, until the returned function is called."""
        return self._state.subscribe(lambda _: on_change())

    @property
    def has_missed(self) -> bool:
        """Whether anything changed since the state was shown last."""
        return bool(self._missed)

    def snapshot(self) -> bytes:
        """Return the snapshot event of this moment."""
        self._missed.clear()
        self._hidden.clear()
        self._revision = self._state.revision
        return state_snapshot(self._client_state, self._state.encoded())

    def news(self) -> bytes | None:
        """Return the event that tells what changed since the last; None where nothing is to be shown."""
        missed = self._missed
        if not missed:
            return None
        if missed[0].revision != self._revision + 1:
            return self._caught_up()
        task, own = self._task, self.operation
        shown = [
            each.encoded or each.encode()
            for each in missed
            if each.maker is not task and own not in each.operations
        ]
        if len(shown) < len(missed):
            shown = self._without_own()
        self._revision = missed[-1].revision
        missed.clear()
        if not shown:
            return None
        event = state_delta(shown, self._revision)
        return event if len(event) <= DELTA_MAX else self._caught_up()

    def _without_own(self) -> list[bytes]:
        """Return what is to be shown of what was missed, where some of it tells of the run's own operation."""
        shown: list[bytes] = []
        for delta in self._missed:
            if delta.maker is not self._task and self.operation not in delta.operations:
                shown.append(delta.encoded or delta.encode())
            elif changes := [change for change in delta[:-1] if self._is_shown(change, delta)]:
                shown.append(encoded_changes(changes))
        return shown

    def _caught_up(self) -> bytes:
        """Return a snapshot; what was missed may tell of the run's own operation, of which nobody tells again."""
        for delta in self._missed:
            for change in delta[:-1]:
                self._is_shown(change, delta)
        return self.snapshot()

    def _is_shown(self, change: JsonObject, delta: Delta) -> bool:
        path = str(change["path"])
        if not path.startswith(_OPERATIONS):
            return True
        operation, entry = path[len(_OPERATIONS) :], change.get("value")
        if not isinstance(entry, dict):  # It is removed.
            was_hidden = operation in self._hidden
            self._hidden.discard(operation)
            return not was_hidden
        if delta.maker is self._task:
            # An operation runs in the task of the request that drives it, and a change is told in the task
            # that makes it: this one is the run's own.
            self.operation, self.is_call = operation, "tool" in entry
        # Its progress is told in whichever task hears of it.
        if operation == self.operation and entry.get("state") == OperationState.WORKING:
            if operation in delta.began:
                self._hidden.add(operation)
            return False
        self._hidden.discard(operation)
        return True
