"""The live state: snapshots, deltas, and nothing missing or doubled between them."""

import asyncio
from typing import Any

import anyio
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.workspaces.live_state import Delta, LiveState, Section
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


def test_a_delta_says_which_operations_it_changes_and_which_of_them_began() -> None:
    state, heard = LiveState("w"), list[Delta]()
    state.put("operations", "unheard", {"state": "working"})
    state.subscribe(heard.append)
    state.put("operations", "op-1", {"state": "working"})
    with state.one_change():
        state.put("operations", "op-1", {"state": "input_required"})
        state.put("interactions", "int-1", {})
        state.put("operations", "op-2", {"state": "working"})
        state.drop("operations", "unheard")
    state.put("servers", "p", {})
    assert [(delta.revision, [*delta.operations], [*delta.began]) for delta in heard] == [
        (2, ["op-1"], ["op-1"]),
        (3, ["op-1", "op-2", "unheard"], ["op-2"]),
        (4, [], []),
    ]


async def _drop(state: LiveState) -> None:
    state.drop("servers", "p")


async def test_a_delta_says_which_task_made_it() -> None:
    state, heard, task = LiveState("w"), list[Delta](), asyncio.current_task()
    state.subscribe(heard.append)
    state.put("servers", "p", {})
    async with anyio.create_task_group() as group:
        group.start_soon(_drop, state)
    assert (heard[0].maker, heard[1].maker is task) == (task, False)


def test_a_delta_is_encoded_once_whoever_wants_it() -> None:
    state, heard = LiveState("w"), list[Delta]()
    state.subscribe(heard.append)
    state.put("servers", "p", {"name": "p"})
    (delta,) = heard
    assert delta.encoded is None
    encoded = delta.encode()
    assert orjson.loads(b"[%b]" % encoded) == delta[:-1]
    assert delta.encoded is encoded


def test_what_is_encoded_is_what_there_is_whoever_heard_of_it() -> None:
    state = LiveState("w")
    for change in (
        lambda: state.add("operations", "op-1", lambda: {"state": "working"}),
        lambda: state.put("operations", "op-2", {"state": "working"}),
        lambda: state.drop("operations", "op-1"),
        lambda: state.put("operations", "op-2", {"state": "input_required"}),
        lambda: state.put("servers", "p", {}),
        lambda: state.drop("servers", "p"),
        lambda: state.drop("operations", "op-2"),
    ):
        leave = state.subscribe(lambda _: None)
        state.add("operations", "op-3", lambda: {"state": "working"})
        assert orjson.loads(state.encoded()) == state.snapshot()
        state.drop("operations", "op-3")
        assert orjson.loads(state.encoded()) == state.snapshot()
        leave()
        change()
        assert orjson.loads(state.encoded()) == state.snapshot()


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
    assert orjson.loads(state.encoded()) == document
    heard: list[Any] = []
    state.subscribe(heard.append)
    perform(state, after)
    for delta in heard:
        applied(document, delta)
    assert document == state.snapshot() == orjson.loads(state.encoded())


def test_a_listener_that_fails_keeps_no_other_from_hearing() -> None:
    def bug(_: Any) -> None:
        raise RuntimeError("a bug")

    state, heard = LiveState("w"), list[Any]()
    state.subscribe(bug)
    state.subscribe(heard.append)
    state.put("servers", "p", {"name": "p"})
    assert len(heard) == 1
    assert state.snapshot()["rev"] == 1
