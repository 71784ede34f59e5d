"""streamable_http.py: one listen stream, its end, its loss and its cancellation."""

from typing import Any

import anyio
import pytest

from app.connections.streamable_http import StreamableHttpTransport
from app.connections.subscription_filter import Acknowledged, Filter, ListChanged, News
from app.core.answers import (
    Answer,
    AnswerLost,
    AnswerTooLarge,
    HttpRefusal,
    RemoteError,
    RequestFault,
    RequestNotSent,
    Result,
)
from tests.support.http_way import LIMIT, transport_to
from tests.support.mcp_schema import faults
from tests.support.scripted_http import (
    HANG,
    Script,
    ScriptedHttp,
    error,
    event,
    result,
    scripted_http,
    stream,
)
from tests.support.subscriptions import acknowledged, changed, ended

pytestmark = pytest.mark.spec("watch")

TOOLS = Filter(lists=frozenset({"tools"}))


class Heard(list[News]):
    """What a stream told."""

    def __init__(self) -> None:
        super().__init__()
        self._news = anyio.Event()

    def take(self, news: News) -> None:
        self.append(news)
        self._news.set()

    async def has(self, count: int) -> None:
        while len(self) < count:
            self._news = anyio.Event()
            await self._news.wait()


async def outcome(script: Script, heard: Heard | None = None) -> Answer | RequestFault:
    async with scripted_http({"subscriptions/listen": script}) as peer, transport_to(peer) as transport:
        try:
            return await transport.listen(TOOLS, (heard if heard is not None else Heard()).take)
        except RequestFault as fault:
            return fault


async def test_the_request_is_one_post_of_the_specification() -> None:
    async with scripted_http({"subscriptions/listen": ended()}) as peer, transport_to(peer) as transport:
        await transport.listen(TOOLS, Heard().take)
        (seen,) = peer.seen
        assert seen.headers["mcp-method"] == "subscriptions/listen"
        assert seen.params["notifications"] == {"toolsListChanged": True}
        assert faults("SubscriptionsListenRequest", seen.message) == []


async def test_news_come_as_they_are_told_and_the_response_ends_the_stream() -> None:
    heard, gate = Heard(), anyio.Event()
    script = stream(acknowledged(), ": alive\n\n", changed("tools"), gate, changed("tools"), ended_event())
    async with scripted_http({"subscriptions/listen": script}) as peer, transport_to(peer) as transport:
        answers: list[Answer] = []

        async def listen() -> None:
            answers.append(await transport.listen(TOOLS, heard.take))

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await heard.has(2)
            assert answers == []
            gate.set()
        assert heard == [Acknowledged(TOOLS), ListChanged("tools"), ListChanged("tools")]
        assert isinstance(answers[0], Result)


def ended_event() -> str:
    meta = {"io.modelcontextprotocol/subscriptionId": "$id"}
    return event({"jsonrpc": "2.0", "id": "$id", "result": {"resultType": "complete", "_meta": meta}})


@pytest.mark.parametrize(
    "script, kind",
    [
        (stream(acknowledged()), AnswerLost),
        (stream(acknowledged(), then="reset"), AnswerLost),
        (stream(acknowledged(), event({"jsonrpc": "2.0", "id": "$id", "result": 7})), RequestFault),
        (
            stream(
                acknowledged(),
                event(
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "$id"}}
                ),
                HANG,
            ),
            AnswerLost,
        ),
        (stream(acknowledged(), "data: " + "x" * (LIMIT + 1000) + "\n\n"), AnswerTooLarge),
        (error(-32601, status=404), RemoteError),
        (result({}, status=405), HttpRefusal),
        (result({}), Result),
    ],
    ids=["ends", "resets", "malformed", "cancelled", "too-large", "unknown", "refused", "json"],
)
async def test_every_other_end_is_told_apart(script: Script, kind: type[Any]) -> None:
    assert isinstance(await outcome(script), kind)


async def test_foreign_messages_on_the_stream_are_counted_and_end_nothing() -> None:
    heard = Heard()
    script = stream(
        changed("tools"),
        acknowledged(),
        event({"jsonrpc": "2.0", "id": 99, "method": "sampling/createMessage", "params": {}}),
        "data: not json\n\n",
        changed("tools", identifier="$id "),
        changed("tools"),
        ended_event(),
    )
    async with scripted_http({"subscriptions/listen": script}) as peer, transport_to(peer) as transport:
        await transport.listen(TOOLS, heard.take)
        assert heard == [Acknowledged(TOOLS), ListChanged("tools")]
        counted = transport.diagnostics
        assert (counted.peer_requests, counted.dropped_lines, counted.ignored_notifications) == (1, 1, 2)


async def test_cancelling_closes_the_stream_and_sends_nothing() -> None:
    heard = Heard()
    async with scripted_http({"subscriptions/listen": hanging()}) as peer, transport_to(peer) as transport:
        async with anyio.create_task_group() as group:
            group.start_soon(transport.listen, TOOLS, heard.take)
            await heard.has(1)
            group.cancel_scope.cancel()
        await peer.seen[0].gone.wait()
        assert peer.methods == ["subscriptions/listen"]


def hanging() -> Script:
    return stream(acknowledged(), HANG)


async def lost(transport: StreamableHttpTransport, heard: Heard) -> None:
    with pytest.raises(AnswerLost):
        await transport.listen(TOOLS, heard.take)


async def test_a_closed_transport_ends_its_streams_and_opens_none() -> None:
    async with scripted_http({"subscriptions/listen": hanging()}) as peer, transport_to(peer) as transport:
        heard: list[Heard] = [Heard(), Heard()]
        async with anyio.create_task_group() as group:
            for each in heard:
                group.start_soon(lost, transport, each)
                await each.has(1)
            transport.begin_close()
            await transport.close()
        await gone(peer)
        with pytest.raises(RequestNotSent):
            await transport.listen(TOOLS, Heard().take)


async def gone(peer: ScriptedHttp) -> None:
    for seen in peer.seen:
        await seen.gone.wait()
