"""The live state: snapshots, deltas, and nothing missing or doubled between them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.workspaces.live_state import LiveState, Section
from tests.support.live_state import applied

pytestmark = pytest.mark.spec("agui")


def test_a_change_advances_the_revision_by_one_and_names_its_path() -> None:
    state, heard = LiveState("w"), []
    state.subscribe(heard.append)
    state.put("servers", "p", {"name": "p"})
    state.put("servers", "p", {"name": "p", "state": "connected"})
    state.drop("servers", "p")
    assert heard == [
        [
            {"op": "add", "path": "/plurnk/servers/p", "value": {"name": "p"}},
            {"op": "replace", "path": "/plurnk/rev", "value": 1},
        ],
        [
            {"op": "replace", "path": "/plurnk/servers/p", "value": {"name": "p", "state": "connected"}},
            {"op": "replace", "path": "/plurnk/rev", "value": 2},
        ],
        [{"op": "remove", "path": "/plurnk/servers/p"}, {"op": "replace", "path": "/plurnk/rev", "value": 3}],
    ]
    assert state.snapshot() == {
        "workspace": "w",
        "rev": 3,
        "servers": {},
        "pending": {},
        "operations": {},
        "interactions": {},
    }


def test_an_equal_value_and_an_absent_key_change_nothing() -> None:
    state, heard = LiveState("w"), []
    state.put("servers", "p", {"name": "p"})
    state.subscribe(heard.append)
    state.put("servers", "p", {"name": "p"})
    state.drop("servers", "q")
    assert heard == []


def test_several_changes_in_one_block_are_one_delta() -> None:
    state, heard = LiveState("w"), []
    state.subscribe(heard.append)
    with state.one_change():
        state.put("operations", "op-1", {"state": "working"})
        with state.one_change():
            state.put("interactions", "i~/1", {})
        state.drop("operations", "op-1")
    assert [[step["path"] for step in delta] for delta in heard] == [
        [
            "/plurnk/operations/op-1",
            "/plurnk/interactions/i~0~11",
            "/plurnk/operations/op-1",
            "/plurnk/rev",
        ]
    ]


def test_an_unsubscribed_listener_hears_nothing_more() -> None:
    state, heard = LiveState("w"), []
    leave = state.subscribe(heard.append)
    assert state.has_listeners
    leave()
    state.put("servers", "p", {})
    assert heard == []
    assert not state.has_listeners


KEYS = st.text(alphabet="ab~/", min_size=1, max_size=3)
STEPS = st.lists(
    st.tuples(st.sampled_from(["servers", "operations"]), KEYS, st.none() | st.integers(0, 2)), max_size=20
)


@given(before=STEPS, after=STEPS)
def test_a_snapshot_and_the_deltas_after_it_are_the_state(before: Any, after: Any) -> None:
    def perform(state: LiveState, steps: list[tuple[Section, str, int | None]]) -> None:
        for section, key, value in steps:
            if value is None:
                state.drop(section, key)
            else:
                state.put(section, key, {"value": value})

    state = LiveState("w")
    perform(state, before)
    document: Any = state.snapshot()
    heard: list[Any] = []
    state.subscribe(heard.append)
    perform(state, after)
    for delta in heard:
        applied(document, delta)
    assert document == state.snapshot()


def test_a_listener_that_fails_keeps_no_other_from_hearing() -> None:
    def bug(_: Any) -> None:
        raise RuntimeError("a bug")

    state, heard = LiveState("w"), list[Any]()
    state.subscribe(bug)
    state.subscribe(heard.append)
    state.put("servers", "p", {"name": "p"})
    assert len(heard) == 1
    assert state.snapshot()["rev"] == 1
