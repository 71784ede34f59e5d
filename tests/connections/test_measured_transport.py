"""A measured transport: every end of a request is counted by its word, timed once, and changes nothing."""

from contextlib import suppress
from typing import Any

import anyio
import pytest

from app.connections.classify import Peer
from app.connections.measured_transport import MeasuredOpener
from app.connections.transport import AddressNotSent
from app.core.answers import (
    AnswerLost,
    AnswerMalformed,
    AnswerTooLarge,
    HttpRefusal,
    RemoteError,
    RequestNotSent,
    Result,
)
from app.core.telemetry import Telemetry
from tests.support.connection_house import Script, Way

pytestmark = pytest.mark.spec("observe")

ENDS: dict[str, list[Any]] = {
    "answered": [Result({}, 2)],
    "error": [RemoteError(-32603, "no")],
    "refused": [HttpRefusal(500)],
    "not-sent": [RequestNotSent("r"), AddressNotSent("r")],
    "lost": [AnswerLost("r")],
    "malformed": [AnswerMalformed("r")],
    "too-large": [AnswerTooLarge(9)],
    "internal": [RuntimeError("a bug")],
}


@pytest.mark.parametrize(
    "word, end", [(word, end) for word, ends in ENDS.items() for end in ends], ids=lambda each: str(each)[:30]
)
async def test_every_end_of_a_request_has_its_word(word: str, end: Any) -> None:
    telemetry = Telemetry()
    script: Script = {"tools/call": end}

    async def open_way(on_lost: Any) -> Way:
        return Way(script, on_lost)

    transport = await MeasuredOpener(open_way, Peer("p", "http"), telemetry)(lambda _: None)
    if isinstance(end, Exception):
        with pytest.raises(type(end)) as raised:
            await transport.request("tools/call", {})
        assert raised.value is end
    else:
        assert await transport.request("tools/call", {}) is end
    assert telemetry.measures.requests.values == {("http", word): 1}
    assert sum(telemetry.measures.request_seconds.values["http",].buckets) == 1


async def test_a_request_whose_caller_left_is_cancelled() -> None:
    telemetry = Telemetry()

    async def hang(_: Way) -> Any:
        await anyio.sleep_forever()

    async def open_way(on_lost: Any) -> Way:
        return Way({"tools/call": hang}, on_lost)

    transport = await MeasuredOpener(open_way, Peer("p", "stdio"), telemetry)(lambda _: None)
    with anyio.move_on_after(0.01), suppress(AnswerLost):
        await transport.request("tools/call", {})
    assert telemetry.measures.requests.values == {("stdio", "cancelled"): 1}


async def test_all_else_is_the_transports_own() -> None:
    ways: list[Way] = []

    async def open_way(on_lost: Any) -> Way:
        ways.append(Way({}, on_lost))
        ways[0].close_failure = "stuck"
        return ways[0]

    transport = await MeasuredOpener(open_way, Peer("p", "stdio"), Telemetry())(lambda _: None)
    assert transport.diagnostics is ways[0].diagnostics
    assert transport.account("r").exit_status == 3
    transport.begin_close()
    assert (await transport.close(), ways[0].closed) == ("stuck", 1)
