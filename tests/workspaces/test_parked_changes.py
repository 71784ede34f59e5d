"""A change that waits for a person: nothing of it is there until the sign-in, then all of it, or a Problem."""

from typing import Any

import anyio
import pytest

from app.core.attachments import Attached
from app.core.oauth_problems import (
    OAuthCallbackInvalid,
    OAuthMetadataInvalid,
    OAuthNotPending,
    OAuthTargetConflict,
)
from app.core.problem import Problem
from app.core.problems import ServerBusy, ServerChanged, ServerExists, ServerUnavailable, TooMany
from tests.support.operations_house import OperationsHouse
from tests.support.protected_house import complete, manage, pending, protected_house, states
from tests.support.sign_ins import FOREIGN, GatedAttempt, oauth

pytestmark = pytest.mark.spec("oauth", "lifecycle")


async def rows(house: OperationsHouse) -> dict[str, Any]:
    return dict(await house.store.load("w"))


def plain(name: str = "q") -> dict[str, Any]:
    return {"name": name, "transport": "http", "url": f"http://{name}.example/mcp"}


async def test_an_attach_that_waits_publishes_and_stores_nothing_and_is_attached_by_its_callback() -> None:
    attempt = GatedAttempt()
    async with protected_house(attempt) as house:
        answered = await manage(house, "attach", server=oauth())
        assert (answered["status"], answered["authorization"]["url"]) == (202, attempt.url)
        assert (await states(house), await rows(house), house.connector.opened) == ({}, {}, [])
        assert list(house.state("pending")) == ["p"]
        listed: Any = (await manage(house, "list"))["pending"]
        assert listed == [
            {"name": "p", "action": "workspace.mcp.attach", "authorization": answered["authorization"]}
        ]
        attached = await complete(house, attempt.callback)
        assert (attached["status"], attached["server"]["state"]) == (201, "connected")
        assert (await states(house), list(await rows(house))) == ({"p": "connected"}, ["p"])
        assert (await pending(house), house.state("pending")) == ([], {})
        with pytest.raises(OAuthCallbackInvalid):
            await complete(house, attempt.callback)


@pytest.mark.parametrize("kind", ["replace", "reconnect"])
async def test_the_old_connection_serves_until_the_callback(kind: str) -> None:
    attempt = GatedAttempt()
    async with protected_house(attempt) as house:
        house.connector.protected.clear()
        await manage(house, "attach", server=oauth())
        house.connector.protected.add("p")
        before, old = house.workspace.snapshot, house.peer
        members: dict[str, Any] = {"name": "p"} if kind == "reconnect" else {"server": oauth(tools=["get"])}
        assert (await manage(house, kind, **members))["status"] == 202
        assert house.workspace.snapshot is before
        answered = await complete(house, attempt.callback)
        assert (answered["status"], answered["server"]["state"]) == (200, "connected")
        assert (old.is_retired, house.peer.is_retired) == (True, False)
        stored = str((await rows(house))["p"])
        assert ("get" in stored) is (kind == "replace")


async def test_a_callback_can_lead_to_another_sign_in() -> None:
    weak, strong = GatedAttempt("weak", gives_token=False), GatedAttempt("strong")
    async with protected_house(weak, strong) as house:
        await manage(house, "attach", server=oauth())
        again = await complete(house, weak.callback)
        assert (again["status"], again["authorization"]["url"]) == (202, strong.url)
        with pytest.raises(OAuthCallbackInvalid):
            await complete(house, weak.callback)
        assert (await complete(house, strong.callback))["status"] == 201


async def test_a_bad_callback_leaves_what_is_pending() -> None:
    attempt = GatedAttempt()
    async with protected_house(attempt) as house:
        await manage(house, "attach", server=oauth())
        with pytest.raises(OAuthCallbackInvalid):
            await complete(house, FOREIGN)
        assert await pending(house) == [attempt.url]
        assert (await complete(house, attempt.callback))["status"] == 201


@pytest.mark.parametrize(
    "failure",
    [
        OAuthCallbackInvalid("p", "its iss is another", is_over=True),
        OAuthMetadataInvalid("p", "it gave no token"),
        ServerUnavailable("p", "http", "nobody is there"),
    ],
    ids=lambda each: each.code,
)
async def test_a_callback_that_was_used_up_ends_what_was_pending(failure: Problem) -> None:
    attempt = GatedAttempt()
    attempt.failure = failure
    async with protected_house(attempt) as house:
        await manage(house, "attach", server=oauth())
        with pytest.raises(type(failure)):
            await complete(house, attempt.callback)
        assert (await pending(house), await states(house), await rows(house)) == ([], {}, {})


async def test_a_new_request_replaces_the_one_that_waits_once_it_waits_itself() -> None:
    old, new = GatedAttempt("old"), GatedAttempt("new")
    async with protected_house(old, new) as house:
        await manage(house, "attach", server=oauth())
        house.connector.refusal = ServerUnavailable("p", "http", "nobody is there")
        with pytest.raises(ServerUnavailable):
            await manage(house, "attach", server=oauth())
        assert await pending(house) == [old.url]
        house.connector.refusal = None
        await manage(house, "attach", server=oauth())
        assert await pending(house) == [new.url]
        with pytest.raises(OAuthCallbackInvalid):
            await complete(house, old.callback)
        assert (await complete(house, new.callback))["status"] == 201


async def test_a_change_of_the_server_meanwhile_is_a_conflict_and_another_server_is_none() -> None:
    attempt = GatedAttempt()
    async with protected_house(attempt) as house:
        await manage(house, "attach", server=oauth())
        await manage(house, "attach", server=plain())
        assert await pending(house) == [attempt.url]
        house.connector.protected.clear()
        await manage(house, "attach", server=plain("p"))
        assert await pending(house) == []
        with pytest.raises(OAuthTargetConflict):
            await complete(house, attempt.callback)
        assert not attempt.is_over
        assert "oauth" not in str(await rows(house))


@pytest.mark.parametrize("kind", ["attach", "reconnect"])
async def test_a_change_that_commits_during_the_exchange_is_a_conflict(kind: str) -> None:
    attempt = GatedAttempt()
    attempt.gate = anyio.Event()
    async with protected_house(attempt) as house:
        if kind == "reconnect":
            house.connector.protected.clear()
            await manage(house, "attach", server=oauth())
            house.connector.protected.add("p")
            await manage(house, "reconnect", name="p")
        else:
            await manage(house, "attach", server=oauth())

        async def conflicting() -> None:
            with pytest.raises(OAuthTargetConflict):
                await complete(house, attempt.callback)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(conflicting)
                await attempt.exchanging.wait()
                house.connector.protected.clear()
                other = "attach" if kind == "attach" else "replace"
                await manage(house, other, server=plain("p"))
                house.connector.protected.add("p")
                assert attempt.gate is not None
                attempt.gate.set()
        assert "oauth" not in str(await rows(house))
        *_, standing, candidate = house.connector.opened
        assert (standing.is_retired, candidate.is_retired) == (False, True)
        assert not house.workspace.grants.has_token


async def test_a_busy_server_is_refused_before_the_callback_is_looked_at() -> None:
    attempt = GatedAttempt()
    async with protected_house(attempt) as house:
        house.connector.protected.clear()
        await manage(house, "attach", server=oauth())
        house.connector.protected.add("p")
        await manage(house, "reconnect", name="p")
        lease = await house.workspace.lease("p", "op-1")
        with pytest.raises(ServerBusy):
            await complete(house, attempt.callback)
        lease.release()
        assert (await complete(house, attempt.callback))["status"] == 200


async def test_of_two_completes_at_once_one_wins() -> None:
    attempt = GatedAttempt()
    attempt.gate = anyio.Event()
    ends: list[Any] = []
    async with protected_house(attempt) as house:
        await manage(house, "attach", server=oauth())

        async def completing() -> None:
            try:
                ends.append((await complete(house, attempt.callback))["status"])
            except OAuthCallbackInvalid as refused:
                ends.append(refused.code)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(completing)
                await attempt.exchanging.wait()
                await completing()
                attempt.gate.set()
        assert (ends[1], len(ends)) == (201, 2)
        assert await states(house) == {"p": "connected"}


@pytest.mark.parametrize(("meanwhile", "refusal"), [("attached", ServerExists), ("detached", ServerChanged)])
async def test_a_sign_in_that_nothing_can_come_of_is_not_parked(
    meanwhile: str, refusal: type[Problem]
) -> None:
    async with protected_house(GatedAttempt()) as house:

        async def refused() -> None:
            with pytest.raises(refusal):
                await manage(house, "attach", server=oauth())

        gate = house.connector.gate = anyio.Event()
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(refused)
                await house.connector.opening.wait()
                house.connector.gate = None
                if meanwhile == "attached":
                    house.connector.protected.clear()
                    await manage(house, "attach", server=plain("p"))
                    house.connector.protected.add("p")
                gate.set()
                if meanwhile == "detached":
                    # In the very turn in which the server's demand arrives.
                    await manage(house, "detach", name="p")
        assert await pending(house) == []


@pytest.mark.parametrize("is_exchanging", [False, True])
async def test_detaching_what_waits_cancels_it(*, is_exchanging: bool) -> None:
    attempt = GatedAttempt()
    attempt.gate = anyio.Event()
    async with protected_house(attempt) as house:
        await manage(house, "attach", server=oauth())

        async def completing() -> None:
            with pytest.raises(ServerChanged):
                await complete(house, attempt.callback)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                if is_exchanging:
                    group.start_soon(completing)
                    await attempt.exchanging.wait()
                detached = await manage(house, "detach", name="p")
                assert detached == {"status": 200, "name": "p", "detached": True}
        assert (await pending(house), await states(house), await rows(house)) == ([], {}, {})
        with pytest.raises(OAuthNotPending):
            await complete(house, attempt.callback)


async def test_detaching_a_server_drops_its_reconnect_that_waits() -> None:
    attempt = GatedAttempt()
    async with protected_house(attempt) as house:
        house.connector.protected.clear()
        await manage(house, "attach", server=oauth())
        house.connector.protected.add("p")
        await manage(house, "reconnect", name="p")
        await manage(house, "detach", name="p")
        with pytest.raises(OAuthNotPending):
            await complete(house, attempt.callback)


async def test_a_reconnect_inherits_what_was_granted_and_a_replace_does_not() -> None:
    first, second = GatedAttempt("first"), GatedAttempt("second")
    async with protected_house(first, second) as house:
        await manage(house, "attach", server=oauth())
        await complete(house, first.callback)
        assert (await manage(house, "reconnect", name="p"))["status"] == 200
        assert house.peer.authorization is first.authorization
        assert (await manage(house, "replace", server=oauth()))["status"] == 202
        assert isinstance((await rows(house))["p"], Attached)
        assert (await complete(house, second.callback))["status"] == 200
        assert house.peer.authorization is second.authorization
        await manage(house, "detach", name="p")
        assert not house.workspace.grants.has_token


@pytest.mark.spec("limits")
async def test_the_limit_of_pending_authorizations_refuses_one_more() -> None:
    attempts = GatedAttempt("p"), GatedAttempt("q")
    async with protected_house(*attempts, PLURNK_MAX_PENDING="1") as house:
        house.connector.protected.add("q")
        await manage(house, "attach", server=oauth())
        with pytest.raises(TooMany) as refused:
            await manage(house, "attach", server=oauth("q"))
        assert refused.value.facts == {"limit": 1, "setting": "PLURNK_MAX_PENDING"}
        assert await pending(house) == [attempts[0].url]


async def test_what_waits_or_holds_a_token_keeps_its_workspace() -> None:
    attempt = GatedAttempt()
    async with protected_house(attempt) as house:
        await manage(house, "attach", server=oauth())
        assert (house.workspace.idle_ms(), house.workspace.is_at_rest) == (0.0, False)
        await complete(house, attempt.callback)
        assert (house.workspace.idle_ms(), house.workspace.is_at_rest) == (0.0, False)
        await house.workspace.go_idle(1)
        assert not house.peer.is_retired
        await manage(house, "detach", name="p")
        await anyio.wait_all_tasks_blocked()
        assert house.workspace.is_at_rest


@pytest.mark.spec("shutdown")
async def test_shutdown_drops_what_waits() -> None:
    attempt = GatedAttempt()
    async with protected_house(attempt) as house:
        await manage(house, "attach", server=oauth())
        await house.manager.shut_down()
        assert (len(house.workspace.pending), house.state("pending")) == (0, {})
