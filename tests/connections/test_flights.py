"""Whose answer a message of a child is. SPEC §connection. H6, R1."""

import asyncio
from typing import Any

import anyio
import pytest

from app.connections.flights import BETTER_SECONDS, Flights
from app.connections.listen_gate import ListenGate
from app.connections.progress import ProgressGate
from app.connections.subscription_filter import Filter, News
from app.connections.transport import Diagnostics
from app.connections.wire import Response, decode
from app.core.answers import AnswerMalformed, RemoteError, Result

pytestmark = [pytest.mark.spec("connection"), pytest.mark.anyio]
ERROR = RemoteError(-32600, "no")
RESULT = Result({"a": 1}, 7)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def nothing(_news: News) -> None:
    """Take news and do nothing."""


def standing() -> ListenGate:
    """Return the gate of a stream that was acknowledged."""
    gate = ListenGate(9, Filter(lists=frozenset({"tools"})), nothing, Diagnostics())
    acknowledged = (
        b'{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":'
        b'{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":9}}}'
    )
    message: Any = decode(acknowledged)
    gate.take(message)
    assert gate.is_acknowledged
    return gate


async def test_an_answer_settles_the_request_with_this_very_id() -> None:
    flights = Flights()
    one, two = flights.open(1, None), flights.open(2, None)
    assert not flights.take(Response(3, RESULT))
    assert flights.take(Response(2, RESULT))
    assert not flights.take(Response(2, ERROR))
    assert await two.settled == RESULT
    assert not one.settled.done()
    assert [(identifier, flight) for identifier, flight in flights] == [(1, one)]


@pytest.mark.parametrize("others", [0, 1])
async def test_an_error_without_an_id_settles_the_only_request_that_can_be_meant(others: int) -> None:
    flights = Flights()
    flights.open(9, standing())
    asked = flights.open(1, ProgressGate(1, lambda _progress: None, Diagnostics()))
    for number in range(others):
        flights.open(20 + number, None)
    assert flights.take(Response(None, ERROR)) is (others == 0)
    assert asked.settled.done() is (others == 0)


async def test_an_error_without_an_id_settles_nothing_once_a_caller_left() -> None:
    flights = Flights()
    flights.open(1, None)
    assert flights.leave(1)
    assert not flights.leave(1)
    flights.has_cancelled = True
    asked = flights.open(2, None)
    assert not flights.take(Response(None, ERROR))
    assert not asked.settled.done()


async def test_what_is_ours_but_for_its_form_ends_its_request_unless_a_better_answer_comes() -> None:
    flights = {name: Flights() for name in ("text", "mended", "nameless", "other", "gone")}
    asked = {name: each.open(7, None) for name, each in flights.items()}
    assert not flights["text"].take(Response("7", ERROR))
    assert not flights["mended"].take(Response("7", RESULT))
    assert flights["mended"].take(Response(7, RESULT))
    assert not flights["nameless"].take(Response(None, RESULT))
    assert not flights["other"].take(Response("8", RESULT))
    assert not flights["gone"].take(Response("7", RESULT))
    flights["gone"].leave(7)
    assert not asked["text"].settled.done()
    with anyio.fail_after(5):
        for name in ("text", "nameless"):
            assert isinstance(await asked[name].settled, AnswerMalformed)
    assert asked["mended"].settled.result() == RESULT
    assert not asked["other"].settled.done()
    assert not asked["gone"].settled.done()


async def test_a_flood_of_such_answers_is_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[float] = []
    loop, flights = asyncio.get_running_loop(), Flights()

    def note(delay: float, *_: object) -> None:
        timers.append(delay)

    monkeypatch.setattr(loop, "call_later", note)
    flights.open(1, None)
    for _ in range(1000):
        flights.take(Response("1", RESULT))
    assert timers == [BETTER_SECONDS]
