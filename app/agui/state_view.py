"""The workspace's state as one run shows it: the snapshot, then the changes. SPEC §agui.

A run tells of its own operation by tool call events; its entry in the state is shown once it waits for
somebody.
"""

import asyncio

from app.agui.events import state_delta, state_snapshot
from app.core.json_value import JsonObject
from app.core.operation_state import OperationState
from app.workspaces.live_state import Delta, LiveState

_OPERATIONS = "/plurnk/operations/"


class StateView:
    """What one run shows of one workspace's state. Made in the run's own task."""

    def __init__(self, state: LiveState, client_state: JsonObject) -> None:
        self.operation: str | None = None
        """The operation that the run drives; None before there is one."""
        self.is_call = False
        """Whether that operation is a tool call."""
        self._state = state
        self._client_state = client_state
        self._task = asyncio.current_task()
        self._shown: set[str] = set()

    def snapshot(self) -> bytes:
        """Return the snapshot event of this moment."""
        plurnk = self._state.snapshot()
        operations = plurnk["operations"]
        self._shown = set(operations) if isinstance(operations, dict) else set()
        return state_snapshot(self._client_state, plurnk)

    def delta(self, delta: Delta) -> bytes | None:
        """Return the change as an event, or None where nothing of it is to be shown."""
        *changes, revision = delta
        shown = [change for change in changes if self._is_shown(change)]
        return state_delta([*shown, revision]) if shown else None

    def _is_shown(self, change: JsonObject) -> bool:
        path = str(change["path"])
        if not path.startswith(_OPERATIONS):
            return True
        operation = path.removeprefix(_OPERATIONS)
        if change["op"] == "remove":
            was_shown = operation in self._shown
            self._shown.discard(operation)
            return was_shown
        if asyncio.current_task() is self._task:
            # An operation runs in the task of the request that drives it, and a change is told in the task
            # that makes it: this one is the run's own.
            self.operation, self.is_call = operation, _is_call(change)
        # Its progress is told in whichever task hears of it.
        if operation == self.operation and _is_working(change):
            return False
        self._shown.add(operation)
        return True


def _is_call(change: JsonObject) -> bool:
    value = change.get("value")
    return isinstance(value, dict) and "tool" in value


def _is_working(change: JsonObject) -> bool:
    value = change.get("value")
    return isinstance(value, dict) and value.get("state") == OperationState.WORKING
