"""The state that a watcher holds is the one that the events tell. SPEC §agui."""

import pytest

from app.cli.watched_state import Change, WatchedState
from app.core.json_value import Json, JsonObject
from app.workspaces.live_state import LiveState

pytestmark = pytest.mark.spec("cli", "agui")


def snapshot(**sections: Json) -> JsonObject:
    return {
        "type": "STATE_SNAPSHOT",
        "snapshot": {"other": 1, "plurnk": {"workspace": "w", "rev": 1, **sections}},
    }


def delta(*operations: JsonObject) -> JsonObject:
    return {"type": "STATE_DELTA", "delta": [*operations]}


def test_a_snapshot_replaces_everything_and_tells_the_difference() -> None:
    state = WatchedState()
    assert state.document == {}
    assert state.take(snapshot(servers={"b": {"state": "connected"}, "a": {"state": "preparing"}})) == [
        Change("servers", "b", {"state": "connected"}),
        Change("servers", "a", {"state": "preparing"}),
    ]
    assert list(state.section("servers")) == ["a", "b"]
    assert state.take(snapshot(servers={"b": {"state": "connected"}}, pending={"c": {"name": "c"}})) == [
        Change("servers", "a", None),
        Change("pending", "c", {"name": "c"}),
    ]


def test_what_is_no_state_changes_nothing() -> None:
    state = WatchedState()
    assert state.take({"type": "RUN_STARTED"}) == []
    assert state.take({"type": "STATE_SNAPSHOT", "snapshot": {"foreign": 1}}) == []
    assert state.take(delta({"op": "add", "path": "/foreign/x", "value": 1})) == []
    assert state.section("servers") == {}


def test_the_deltas_of_the_daemon_lead_to_the_daemons_own_state() -> None:
    ours, theirs = WatchedState(), LiveState("w")
    theirs.subscribe(lambda operations: told.extend(ours.take(delta(*operations))))
    told: list[Change] = []
    ours.take({"type": "STATE_SNAPSHOT", "snapshot": {"plurnk": theirs.snapshot()}})
    theirs.put("servers", "a", {"state": "preparing"})
    theirs.put("operations", "op/1~x", {"state": "working"})
    with theirs.one_change():
        theirs.put("servers", "a", {"state": "connected"})
        theirs.put("interactions", "int-1", {"message": "?"})
    theirs.drop("operations", "op/1~x")
    assert ours.document == theirs.snapshot()
    assert told == [
        Change("servers", "a", {"state": "preparing"}),
        Change("operations", "op/1~x", {"state": "working"}),
        Change("servers", "a", {"state": "connected"}),
        Change("interactions", "int-1", {"message": "?"}),
        Change("operations", "op/1~x", None),
    ]
