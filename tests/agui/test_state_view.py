"""The state as a run shows it: its own operation is told by events, not by state, until it waits."""

from typing import Any

import anyio
import orjson
import pytest

from app.agui import state_view as module
from app.agui.state_view import StateView
from app.workspaces.live_state import LiveState

pytestmark = pytest.mark.spec("agui")

WORKING: Any = {"server": "p", "tool": "deploy", "state": "working"}
ASKING: Any = {**WORKING, "state": "input_required"}


class Shown:
    """A view and what it showed."""

    def __init__(self, state: LiveState) -> None:
        self.view = StateView(state, {"app": 1})
        self.snapshot = orjson.loads(self.view.snapshot())["snapshot"]
        self.deltas: list[list[tuple[str, str]]] = []
        self.view.follow()
        self.look = state.subscribe(self._changed)
        """Stops looking at every change at once."""

    def _changed(self, _: Any) -> None:
        if (event := self.told()) is not None:
            self.deltas.append([(each["op"], each["path"]) for each in event["delta"]])

    def told(self) -> Any:
        """Return the event that tells what is new."""
        event = self.view.news()
        return None if event is None else orjson.loads(event)


def rev() -> tuple[str, str]:
    return ("replace", "/plurnk/rev")


async def in_another_task(call: Any, *arguments: Any) -> None:
    async def task() -> None:
        call(*arguments)

    async with anyio.create_task_group() as group:
        group.start_soon(task)


async def test_the_snapshot_has_the_clients_state_and_ours() -> None:
    shown = Shown(LiveState("w"))
    assert shown.snapshot == {
        "app": 1,
        "plurnk": {
            "workspace": "w",
            "rev": 0,
            "servers": {},
            "pending": {},
            "operations": {},
            "interactions": {},
        },
    }


async def test_a_plain_call_shows_nothing_of_its_own_operation() -> None:
    state = LiveState("w")
    shown = Shown(state)
    state.put("operations", "op-1", WORKING)
    state.drop("operations", "op-1")
    assert shown.deltas == []
    assert shown.view.operation == "op-1"


async def test_an_own_operation_shows_once_it_waits_and_its_end_too() -> None:
    state = LiveState("w")
    shown = Shown(state)
    state.put("operations", "op-1", WORKING)
    with state.one_change():
        state.put("operations", "op-1", ASKING)
        state.put("interactions", "int-1", {"operation": "op-1"})
    with state.one_change():
        state.drop("interactions", "int-1")
        state.drop("operations", "op-1")
    assert shown.deltas == [
        [("add", "/plurnk/operations/op-1"), ("add", "/plurnk/interactions/int-1"), rev()],
        [("remove", "/plurnk/interactions/int-1"), ("remove", "/plurnk/operations/op-1"), rev()],
    ]


async def test_a_resumed_operation_of_the_snapshot_is_removed_where_it_ends() -> None:
    state = LiveState("w")
    state.put("operations", "op-1", ASKING)
    shown = Shown(state)
    state.put("operations", "op-1", WORKING)
    state.drop("operations", "op-1")
    assert shown.deltas == [[("remove", "/plurnk/operations/op-1"), rev()]]


async def test_the_operations_of_others_show_in_full() -> None:
    state = LiveState("w")
    shown = Shown(state)
    await in_another_task(state.put, "operations", "op-2", WORKING)
    await in_another_task(state.drop, "operations", "op-2")
    assert shown.deltas == [
        [("add", "/plurnk/operations/op-2"), rev()],
        [("remove", "/plurnk/operations/op-2"), rev()],
    ]
    assert shown.view.operation is None


async def test_an_own_operation_that_somebody_cancels_is_not_removed_where_it_never_showed() -> None:
    state = LiveState("w")
    shown = Shown(state)
    state.put("operations", "op-1", WORKING)
    await in_another_task(state.drop, "operations", "op-1")
    assert shown.deltas == []


async def test_the_progress_of_the_own_operation_is_not_shown_in_whichever_task_it_is_told() -> None:
    state = LiveState("w")
    shown = Shown(state)
    state.put("operations", "op-1", WORKING)
    await in_another_task(state.put, "operations", "op-2", WORKING)
    for operation in ("op-1", "op-2"):
        await in_another_task(state.put, "operations", operation, {**WORKING, "progress": {"progress": 1}})
    assert shown.deltas == [[("add", "/plurnk/operations/op-2"), rev()]] * 2
    assert shown.view.operation == "op-1"


async def test_what_a_later_snapshot_shows_is_removed_again() -> None:
    state = LiveState("w")
    shown = Shown(state)
    state.put("operations", "op-1", WORKING)
    shown.view.snapshot()
    state.drop("operations", "op-1")
    assert shown.deltas == [[("remove", "/plurnk/operations/op-1"), rev()]]


async def test_all_that_changed_meanwhile_is_one_event_without_what_is_not_shown() -> None:
    state = LiveState("w")
    shown = Shown(state)
    shown.look()
    await in_another_task(state.put, "operations", "op-2", WORKING)
    state.put("operations", "op-1", WORKING)
    await in_another_task(state.drop, "operations", "op-2")
    await in_another_task(state.drop, "operations", "op-1")
    assert shown.view.has_missed
    assert shown.told() == {
        "type": "STATE_DELTA",
        "delta": [
            {"op": "add", "path": "/plurnk/operations/op-2", "value": WORKING},
            {"op": "remove", "path": "/plurnk/operations/op-2"},
            {"op": "replace", "path": "/plurnk/rev", "value": 4},
        ],
    }
    assert shown.view.operation == "op-1"
    assert not shown.view.has_missed
    assert shown.told() is None


@pytest.mark.parametrize(
    ("limit", "value"), [("MISSED_MAX", 3), ("DELTA_MAX", 500)], ids=["too many", "too large"]
)
async def test_who_missed_too_much_is_shown_the_whole(
    limit: str, value: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, limit, value)
    state = LiveState("w")
    shown = Shown(state)
    shown.look()
    for number in range(4):
        state.put("servers", "p", {"name": "p", "n": number, "long": "x" * 100})
    state.put("operations", "op-1", WORKING)
    assert shown.told() == {
        "type": "STATE_SNAPSHOT",
        "snapshot": {"app": 1, "plurnk": state.snapshot()},
    }
    assert shown.view.operation == "op-1"
    state.drop("operations", "op-1")
    assert [each["op"] for each in shown.told()["delta"]] == ["remove", "replace"]


async def test_nothing_is_missed_that_is_not_followed() -> None:
    state = LiveState("w")
    view = StateView(state, {})
    view.snapshot()
    leave = view.follow()
    state.put("servers", "p", {})
    assert view.has_missed
    view.snapshot()
    leave()
    state.put("servers", "q", {})
    assert not view.has_missed
    assert not state.has_listeners


async def test_servers_and_pending_always_show() -> None:
    state = LiveState("w")
    shown = Shown(state)
    state.put("servers", "p", {"name": "p"})
    state.put("pending", "q", {"name": "q"})
    state.drop("servers", "p")
    assert [delta[0] for delta in shown.deltas] == [
        ("add", "/plurnk/servers/p"),
        ("add", "/plurnk/pending/q"),
        ("remove", "/plurnk/servers/p"),
    ]
