"""server_connection.py: states, requests, loss and recovery, retirement."""

import anyio
import anyio.lowlevel
import pytest

from app.core.answers import Answer, AnswerLost, RemoteError, RequestNotSent, Result
from app.core.connection_state import ConnectionState
from app.core.json_value import JsonObject
from app.core.problem import Problem
from app.core.problems import ServerUnavailable
from tests.support.connection_house import Script, Way, house, listed

CALL: JsonObject = {"name": "t", "arguments": {"area": "north"}}


@pytest.mark.spec("connection")
async def test_it_is_ready_once_prepared_and_closed_once_retired() -> None:
    async with house() as home:
        connection = home.connection
        assert connection.state is ConnectionState.PREPARING
        with pytest.raises(RequestNotSent):
            await connection.request("tools/call", CALL)
        await connection.prepare()
        assert connection.state is ConnectionState.READY
        assert [entry.name for entry in connection.catalog.tools] == ["t"]
        assert await connection.request("tools/call", CALL) == Result({"content": []}, 1)
        assert await connection.retire() is None
        assert connection.state is ConnectionState.CLOSED
        with pytest.raises(RequestNotSent):
            await connection.request("tools/call", CALL)
        assert await connection.retire() is None
        assert home.ways[0].closed == 1
        assert home.news == []


@pytest.mark.spec("lifecycle")
async def test_a_failed_preparation_has_closed_its_transport() -> None:
    async with house({"tools/list": RemoteError(-32603, "no")}) as home:
        with pytest.raises(Problem) as raised:
            await home.connection.prepare()
        assert raised.value.code == "catalog-invalid"
        assert home.connection.problem is not None
        assert home.connection.problem.document() == raised.value.document()
        assert home.connection.problem.__traceback__ is None
        assert home.connection.state is ConnectionState.FAILED
        assert home.ways[0].closed == 1
        assert await home.connection.retire() is None


async def never(_: Way) -> Answer:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.spec("lifecycle")
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_a_cancelled_preparation_has_closed_its_transport(method: str) -> None:
    async with house({method: never}) as home:
        async with anyio.create_task_group() as group:
            group.start_soon(home.connection.prepare)
            while not any(request[0] == method for way in home.ways for request in way.requests):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert home.connection.state is ConnectionState.FAILED
        assert home.ways[0].closed == 1


@pytest.mark.spec("prepare")
async def test_silence_is_told_with_what_is_known_of_the_peer() -> None:
    async with house({"server/discover": never}, timeout_ms=20) as home:
        with pytest.raises(ServerUnavailable) as raised:
            await home.connection.prepare()
        assert raised.value.facts["exitStatus"] == 3
        assert "an answer to server/discover did not come within 20 ms" in raised.value.detail


@pytest.mark.spec("connection")
async def test_a_loss_between_the_last_answer_and_ready_is_not_forgotten() -> None:
    async def last(way: Way) -> Answer:
        way.lose()
        return listed(None)

    async with house({"tools/list": last}) as home:
        with pytest.raises(ServerUnavailable) as raised:
            await home.connection.prepare()
        assert raised.value.facts["exitStatus"] == 9
        assert home.connection.state is ConnectionState.FAILED


@pytest.mark.spec("connection")
@pytest.mark.parametrize("failure", [AnswerLost("cut"), RequestNotSent("no")])
async def test_a_failing_request_changes_no_state_and_is_not_sent_again(failure: Exception) -> None:
    async with house({"tools/call": [failure, Result({}, 1)]}) as home:
        await home.connection.prepare()
        with pytest.raises(type(failure)):
            await home.connection.request("tools/call", CALL)
        assert home.connection.state is ConnectionState.READY
        assert await home.connection.request("tools/call", CALL) == Result({}, 1)


@pytest.mark.spec("lifecycle")
@pytest.mark.parametrize("is_watched", [True, False], ids=["to be watched", "with a change to be listed"])
async def test_a_preparation_in_a_group_that_is_over_has_closed_its_transport(*, is_watched: bool) -> None:
    async def changed(_: Way) -> Answer:
        home.connection.watch._observer.on_list_changed("tools")
        return listed(None)

    offered: JsonObject = {"tools": {"listChanged": is_watched}}
    found = Result({"supportedVersions": ["2026-07-28"], "capabilities": offered}, 1)
    async with house({"server/discover": found, "tools/list": changed}) as home:
        pass
    with pytest.raises(RuntimeError):
        await home.connection.prepare()
    assert home.connection.state is ConnectionState.FAILED
    assert home.ways[0].closed == 1
    assert await home.connection.retire() is None


@pytest.mark.spec("lifecycle")
async def test_nobody_waits_for_the_recovery_of_what_is_lost_in_a_group_that_is_over() -> None:
    async with house() as home:
        await home.connection.prepare()
    with pytest.raises(RuntimeError):
        home.ways[0].lose()
    assert await home.connection.retire() is None
    assert home.connection.state is ConnectionState.CLOSED


# Loss and recovery


@pytest.mark.spec("connection")
async def test_a_lost_server_is_prepared_again_and_its_catalog_stays_meanwhile() -> None:
    async with house({}, {"tools/list": listed(None, name="new")}) as home:
        await home.connection.prepare()
        home.ways[0].lose()
        assert home.connection.state is ConnectionState.RECOVERING
        assert home.news == [(ConnectionState.RECOVERING, "server-unavailable")]
        assert home.connection.problem is not None
        assert home.connection.problem.facts["exitStatus"] == 9
        assert [entry.name for entry in home.connection.catalog.tools] == ["t"]
        with pytest.raises(RequestNotSent):
            await home.connection.request("tools/call", CALL)
        await home.until(ConnectionState.READY)
        assert home.connection.problem is None
        assert [entry.name for entry in home.connection.catalog.tools] == ["new"]
        assert home.ways[0].closed == 1
        await home.connection.retire()


@pytest.mark.spec("connection", "observe")
async def test_recovery_goes_on_through_every_kind_of_failure() -> None:
    gone = ServerUnavailable("p", "stdio", "cannot start")
    dying: Script = {"tools/list": AnswerLost("it ended")}
    async with house({}, gone, dying, RuntimeError("a bug"), {}) as home:
        await home.connection.prepare()
        home.ways[0].lose()
        await home.until(ConnectionState.READY)
        codes = [code for _, code in home.news]
        assert codes == ["server-unavailable", "server-unavailable", "server-unavailable", "internal", None]
        restarts = home.connection._terms.measures.restarts
        assert restarts.values == {("server-unavailable",): 2, ("internal",): 1, ("ok",): 1}
        assert [way.closed for way in home.ways] == [1, 1, 0]
        home.ways[-1].lose()
        await home.until(ConnectionState.READY)


@pytest.mark.spec("connection")
async def test_a_server_lost_while_it_recovers_is_tried_again() -> None:
    async def last(way: Way) -> Answer:
        way.lose()
        return listed(None)

    async with house({}, {"tools/list": last}, {}) as home:
        await home.connection.prepare()
        home.ways[0].lose()
        await home.until(ConnectionState.READY)
        assert len(home.ways) == 3
        assert [way.closed for way in home.ways] == [1, 1, 0]


@pytest.mark.spec("lifecycle")
@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_retiring_takes_over_from_a_recovery_wherever_it_is(method: str) -> None:
    async with house({}, {method: never}) as home:
        await home.connection.prepare()
        home.ways[0].lose()
        while not any(request[0] == method for way in home.ways[1:] for request in way.requests):
            await anyio.lowlevel.checkpoint()
        assert await home.connection.retire() is None
        assert home.connection.state is ConnectionState.CLOSED
        assert [way.closed for way in home.ways] == [1, 1]


@pytest.mark.spec("lifecycle")
async def test_retiring_takes_over_from_a_recovery_that_waits() -> None:
    async with house({}, {}, first_delay=3600.0) as home:
        await home.connection.prepare()
        home.ways[0].lose()
        assert await home.connection.retire() is None
        assert (home.connection.state, len(home.ways)) == (ConnectionState.CLOSED, 1)


@pytest.mark.spec("lifecycle")
async def test_a_recovery_that_succeeds_while_it_is_retired_is_closed_too() -> None:
    gate = anyio.Event()

    async def last(_: Way) -> Answer:
        await gate.wait()
        return listed(None)

    async with house({}, {"tools/list": last}) as home, anyio.create_task_group() as group:
        connection = home.connection
        await connection.prepare()
        home.ways[0].lose()
        async with connection._closing:
            group.start_soon(connection.retire)
            while connection.state is not ConnectionState.RETIRING:
                await anyio.lowlevel.checkpoint()
            gate.set()
            await connection._recovery_over.wait()
            assert connection.state is ConnectionState.RETIRING
        assert await connection.retire() is None
        assert [way.closed for way in home.ways] == [1, 1]


@pytest.mark.spec("shutdown")
async def test_a_failed_close_is_told_once_for_all_who_ask() -> None:
    async with house() as home:
        await home.connection.prepare()
        home.ways[0].close_failure = "a process would not end"
        reasons: list[str | None] = []

        async def retire() -> None:
            reasons.append(await home.connection.retire())

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(retire)
        assert reasons == ["a process would not end"] * 3
        assert home.ways[0].closed == 1
        assert home.connection.state is ConnectionState.CLOSED
