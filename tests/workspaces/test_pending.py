"""The room of sign-ins: one a server, bounded over all workspaces, gone when it is too late."""

from datetime import timedelta
from typing import Any

import anyio
import pytest

from app.core.oauth_problems import (
    TOO_LATE,
    USED_UP,
    OAuthCallbackInvalid,
    OAuthNotPending,
    OAuthTargetConflict,
)
from app.core.problem import Problem
from app.core.problems import TooMany
from app.core.rfc3339 import rfc3339
from app.workspaces import pending as pending_room
from app.workspaces.live_state import Delta, LiveState
from app.workspaces.pending import OVER_MAX, ParkedQuestion, Pending, Places, authorization
from tests.support.eventually import eventually
from tests.support.sign_ins import GatedAttempt

pytestmark = pytest.mark.spec("oauth")


def question(name: str = "p", attempt: GatedAttempt | None = None) -> ParkedQuestion:
    return ParkedQuestion(name, "workspace.mcp.call", attempt or GatedAttempt(), f"int-{name}")


class Room:
    """Two workspaces that share two places, and what a watcher of the first is told."""

    def __init__(self) -> None:
        self.places = Places(2)
        self.state = LiveState("w")
        self.told: list[Delta] = []
        self.pending = Pending(self.state, self.places)
        self.other = Pending(LiveState("v"), self.places)
        self.state.subscribe(self.told.append)

    @property
    def shown(self) -> Any:
        return self.state.snapshot()["pending"]


async def test_what_waits_is_found_listed_and_shown_without_its_url() -> None:
    room, q, p = Room(), question("q"), question("p")
    room.pending.park(q)
    room.pending.park(p)
    assert room.pending.all() == [p, q]
    assert room.pending.find("p") is p
    assert "p" in room.pending
    expires_at = rfc3339(p.attempt.expires_at)
    assert authorization(p.attempt) == {"url": p.attempt.url, "expiresAt": expires_at}
    assert room.shown["p"] == {"name": "p", "action": "workspace.mcp.call", "expiresAt": expires_at}
    assert room.told[-1][0] == {"op": "add", "path": "/plurnk/pending/p", "value": room.shown["p"]}
    room.pending.settle(p)
    assert room.told[-1][0] == {"op": "remove", "path": "/plurnk/pending/p"}
    with pytest.raises(OAuthNotPending):
        room.pending.find("p")


@pytest.mark.spec("limits")
async def test_the_places_are_shared_by_all_workspaces_and_given_back() -> None:
    room = Room()
    room.pending.park(question("p"))
    room.other.park(question("p"))
    again = question("p")
    room.pending.park(again)
    with pytest.raises(TooMany) as refused:
        room.pending.park(question("q"))
    assert refused.value.facts == {"limit": 2, "setting": "PLURNK_MAX_PENDING"}
    assert (len(room.pending), room.places.count) == (1, 2)
    assert room.pending.drop("p")
    assert not room.pending.drop("p")
    room.pending.park(question("q"))
    room.other.clear()
    room.pending.clear()
    assert (room.places.count, room.shown, len(room.pending)) == (0, {}, 0)


async def test_what_was_replaced_settles_nothing() -> None:
    room, old, new = Room(), question(), question()
    room.pending.park(old)
    room.pending.park(new)
    room.pending.settle(old)
    assert room.pending.find("p") is new
    room.pending.clear()


async def test_what_is_too_late_waits_no_longer() -> None:
    room = Room()
    room.pending.park(question("p", GatedAttempt(expires_in_s=0.02)))
    room.pending.park(question("q"))
    with anyio.fail_after(5):
        while "p" in room.pending:
            await anyio.sleep(0.005)
    assert (list(room.shown), room.places.count) == (["q"], 1)
    assert refusal_of(room, "p").args == OAuthCallbackInvalid("p", TOO_LATE, is_over=True).args
    room.pending.clear()


async def used_up(room: Room, name: str = "p") -> None:
    parked = question(name)
    room.pending.park(parked)
    await parked.attempt.complete(GatedAttempt().callback)
    room.pending.settle(parked)


def refusal_of(room: Room, name: str) -> Problem:
    is_remembering = room.pending.is_remembering
    with pytest.raises(Problem) as refused:
        room.pending.find(name)
    assert is_remembering or isinstance(refused.value, OAuthNotPending)
    return refused.value


async def test_a_callback_that_was_used_up_is_known_until_the_server_is_asked_for_anew_or_given_up() -> None:
    room = Room()
    for forget in (lambda: room.pending.drop("p"), lambda: room.pending.park(question()), room.pending.clear):
        await used_up(room)
        for _ in range(2):
            assert refusal_of(room, "p").args == OAuthCallbackInvalid("p", USED_UP, is_over=True).args
        assert ("p" in room.pending, room.places.count, room.shown) == (False, 0, {})
        forget()
        room.pending.drop("p")
        assert isinstance(refusal_of(room, "p"), OAuthNotPending)


async def test_a_sign_in_that_was_given_up_unused_is_not_pending() -> None:
    room, parked = Room(), question()
    room.pending.park(parked)
    room.pending.settle(parked)
    assert isinstance(refusal_of(room, "p"), OAuthNotPending)


async def test_no_more_of_what_is_over_is_remembered_than_so_much() -> None:
    room = Room()
    for number in range(OVER_MAX + 1):
        await used_up(room, f"p{number}")
    codes = [refusal_of(room, f"p{number}").code for number in (0, 1, OVER_MAX)]
    assert codes == ["oauth-not-pending", "oauth-callback-invalid", "oauth-callback-invalid"]
    room.pending.clear()


async def test_what_is_over_is_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_room, "OVER_KEPT", timedelta(milliseconds=10))
    room = Room()
    await used_up(room)
    await eventually(lambda: isinstance(refusal_of(room, "p"), OAuthNotPending))


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(days=400)])
async def test_a_wall_clock_that_is_set_neither_ends_nor_prolongs_what_waits(jump: timedelta) -> None:
    room, late, early = Room(), GatedAttempt(expires_in_s=0.02), GatedAttempt()
    for attempt in (late, early):
        attempt.expires_at += jump
    room.places.limit = 3
    for name, attempt in {"late": late, "early": early, "overtaken": early}.items():
        room.pending.park(question(name, attempt))
    room.pending.overtake("overtaken")
    with anyio.fail_after(5):
        while "late" in room.pending:
            await anyio.sleep(0.005)
    assert "early" in room.pending
    with pytest.raises(OAuthTargetConflict):
        room.pending.find("overtaken")
    room.pending.clear()


async def test_a_server_that_was_changed_meanwhile_conflicts_once() -> None:
    room = Room()
    room.pending.overtake("p")
    with pytest.raises(OAuthNotPending):
        room.pending.find("p")
    room.pending.park(question())
    room.pending.overtake("p")
    assert (room.shown, room.places.count, room.pending.all()) == ({}, 0, [])
    with pytest.raises(OAuthTargetConflict):
        room.pending.find("p")
    with pytest.raises(OAuthNotPending):
        room.pending.find("p")


@pytest.mark.parametrize("forget", ["drop", "park"])
async def test_a_conflict_is_forgotten_with_what_comes_after_it(forget: str) -> None:
    room = Room()
    room.pending.park(question())
    room.pending.overtake("p")
    if forget == "drop":
        assert not room.pending.drop("p")
    else:
        room.pending.park(question())
        room.pending.settle(room.pending.find("p"))
    with pytest.raises(OAuthNotPending):
        room.pending.find("p")


async def test_a_conflict_is_forgotten_when_its_callback_would_come_too_late() -> None:
    room = Room()
    room.pending.park(question("p", GatedAttempt(expires_in_s=0.02)))
    room.pending.overtake("p")
    await anyio.sleep(0.03)  # One loop's timers come in their order.
    with pytest.raises(OAuthNotPending):
        room.pending.find("p")
