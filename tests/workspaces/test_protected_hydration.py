"""A server that wants a person to sign in fails no hydration, begins no sign-in, and comes with ``reconnect``."""

from typing import Any

import anyio
import pytest

from app.core.connection_state import ConnectionState
from app.core.oauth_problems import sign_in_required
from app.core.problem import Problem
from app.core.problems import ServerNotConnected, ServerUnavailable
from app.workspaces import hydration
from tests.support.board_house import CATALOG
from tests.support.operations_house import OperationsHouse, operations_house
from tests.support.protected_house import complete, manage, pending, states
from tests.support.sign_ins import GatedAttempt, oauth

pytestmark = pytest.mark.spec("hydration", "oauth")


def defaults(**settings: str) -> Any:
    """Run a house whose service defaults are ``p``, at which a person signs in, and ``q``; nothing is connected."""
    return operations_house(
        {"p": CATALOG, "q": CATALOG},
        definitions={"p": oauth()},
        environment=settings,
        is_hydrated=False,
    )


async def summaries(house: OperationsHouse) -> dict[str, Any]:
    return {each["name"]: each for each in (await manage(house, "list"))["servers"]}


@pytest.mark.parametrize("mode", ["strict", "isolate"])
async def test_hydration_stops_at_the_challenge_and_the_rest_serves(mode: str) -> None:
    attempt = GatedAttempt()
    async with defaults(PLURNK_HYDRATION=mode) as house:
        house.connector.protected.add("p")
        house.connector.attempts.append(attempt)
        listed = await summaries(house)
        assert (listed["p"]["state"], listed["q"]["state"]) == ("authorization-required", "connected")
        assert listed["p"]["problem"] == sign_in_required("p").document()
        assert house.state("servers")["p"]["state"] == "authorization-required"
        assert (house.connector.attempts, await pending(house)) == ([attempt], [])
        with pytest.raises(ServerNotConnected) as refused:
            await house.workspace.lease("p", "op-1")
        assert refused.value.facts["cause"] == listed["p"]["problem"]
        assert (await manage(house, "reconnect", name="p"))["status"] == 202
        assert (await complete(house, attempt.callback))["status"] == 200
        assert await states(house) == {"p": "connected", "q": "connected"}


async def test_a_reconnect_that_fails_after_its_sign_in_keeps_what_was_granted() -> None:
    attempt = GatedAttempt()
    async with defaults() as house:
        house.connector.protected.add("p")
        house.connector.attempts.append(attempt)
        await manage(house, "reconnect", name="p")
        house.connector.failing["p"] = ServerUnavailable("p", "http", "it is down")
        with pytest.raises(ServerUnavailable):
            await complete(house, attempt.callback)
        assert (await states(house))["p"] == "authorization-required"
        del house.connector.failing["p"]
        assert (await manage(house, "reconnect", name="p"))["status"] == 200


async def test_what_a_failed_workspace_was_granted_is_not_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hydration, "BACK_OFF_FIRST_S", 0.0)
    attempt = GatedAttempt()
    async with defaults() as house:
        house.connector.protected.add("p")
        house.connector.attempts.append(attempt)
        house.connector.failing["q"] = ServerUnavailable("q", "stdio", "it is down")
        assert await states(house) == {"p": "authorization-required", "q": "unavailable"}
        await manage(house, "reconnect", name="p")
        assert (await complete(house, attempt.callback))["status"] == 200
        assert await states(house) == {"p": "unavailable", "q": "unavailable"}
        del house.connector.failing["q"]
        with anyio.fail_after(5):
            while set((await states(house)).values()) != {"connected"}:
                await anyio.sleep(0.005)
        assert house.connector.attempts == []


async def test_an_isolated_server_that_comes_back_protected_is_not_tried_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hydration, "BACK_OFF_FIRST_S", 0.01)
    async with defaults(PLURNK_HYDRATION="isolate") as house:
        house.connector.failing["p"] = ServerUnavailable("p", "http", "it is down")
        assert await states(house) == {"p": "unavailable", "q": "connected"}
        house.connector.protected.add("p")
        del house.connector.failing["p"]
        with anyio.fail_after(5):
            while (await states(house))["p"] != "authorization-required":
                await anyio.sleep(0.005)
        with anyio.fail_after(5):
            group: Any = house.workspace.group
            while group._tasks:
                await anyio.sleep(0.005)


async def report(house: OperationsHouse, state: ConnectionState, problem: Problem | None) -> dict[str, Any]:
    """Have the connection of ``p`` report this; return how the server is listed then."""
    peer = next(each for each in house.connector.opened if each.server == "p")
    peer.state, peer.problem = state, problem
    assert house.connector.on_change is not None
    house.connector.on_change(peer)
    return (await summaries(house))["p"]


@pytest.mark.spec("lifecycle")
async def test_a_connection_whose_token_is_refused_keeps_its_catalog_and_takes_no_call() -> None:
    async with defaults() as house:
        await house.workspace.ready()
        required = sign_in_required("p")
        shown = await report(house, ConnectionState.AUTHORIZATION_REQUIRED, required)
        assert (shown["state"], shown["problem"]) == ("authorization-required", required.document())
        with pytest.raises(ServerNotConnected):
            await house.workspace.lease("p", "op-1")
        tools = (await manage(house, "tools", server="p"))["tools"]
        assert [each["tool"] for each in tools] == ["get", "put"]
        assert (await report(house, ConnectionState.PREPARING, None))["state"] == "preparing"
        shown = await report(house, ConnectionState.READY, None)
        assert (shown["state"], "problem" in shown) == ("connected", False)
        (await house.workspace.lease("p", "op-1")).release()
