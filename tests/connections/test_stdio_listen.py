"""stdio.py: listen streams beside requests on one channel, their ends and their cancellation."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.connections.classify import Peer
from app.connections.prepare import CatalogLimits
from app.connections.reaper import Reaper
from app.connections.recovery import Backoff
from app.connections.server_connection import ServerConnection
from app.connections.stdio import StdioTransport
from app.connections.subscription_filter import Acknowledged, Filter, ListChanged, News
from app.connections.subscriptions import WatchTerms
from app.connections.terms import Terms
from app.core.answers import Answer, AnswerLost, AnswerMalformed, RemoteError, RequestNotSent, Result
from tests.support.children import SCRIPTED_STDIO
from tests.support.eventually import eventually
from tests.support.mcp_schema import faults
from tests.support.stdio_transports import OK, QUICK, Losses, opened, opener, sent
from tests.support.subscriptions import ACKNOWLEDGED, notification

pytestmark = [pytest.mark.spec("watch"), pytest.mark.anyio]

TOOLS = Filter(lists=frozenset({"tools"}))
PROMPTS = Filter(lists=frozenset({"prompts"}))
BOTH = {"toolsListChanged": True, "promptsListChanged": True}


@pytest.fixture
async def reaper() -> AsyncIterator[Reaper]:
    reaper = Reaper()
    yield reaper
    await reaper.close()


def said(*messages: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return a step that writes these messages; ``"$id"`` becomes the id of the request it answers."""
    text = "".join(json.dumps(message).replace('"$id"', "$id") + "\n" for message in messages)
    return {"raw": text, **members}


def changed(capability: str, identifier: Any = "$id") -> dict[str, Any]:
    return notification(f"notifications/{capability}/list_changed", identifier)


ACK = notification(ACKNOWLEDGED, notifications=BOTH)
CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "$id"}}
END: dict[str, Any] = {"jsonrpc": "2.0", "id": "$id", "result": {"resultType": "complete"}}


class Stream:
    """One stream, what it told and how it ended."""

    def __init__(self, transport: StdioTransport, asked: Filter = TOOLS) -> None:
        self.news: list[News] = []
        self.end: Answer | AnswerLost | AnswerMalformed | RequestNotSent | None = None
        self.scope = anyio.CancelScope()
        self._transport = transport
        self._asked = asked

    async def run(self) -> None:
        with self.scope:
            try:
                self.end = await self._transport.listen(self._asked, self.news.append)
            except (AnswerLost, AnswerMalformed, RequestNotSent) as fault:
                self.end = fault

    async def has(self, count: int) -> None:
        await eventually(lambda: len(self.news) >= count)


async def test_streams_and_requests_share_one_channel_and_each_gets_its_own(
    reaper: Reaper, tmp_path: Path
) -> None:
    script = {
        "log": str(tmp_path / "log"),
        "on": {
            "subscriptions/listen": [said(ACK)],
            "say": [
                said(changed("tools", 1), changed("prompts", 2), changed("tools", "1"), changed("tools", 9)),
                said(changed("tools", None), changed("prompts", 1), changed("tools", 2)),
                OK,
            ],
        },
    }
    async with opened(reaper, script) as transport, anyio.create_task_group() as group:
        tools, prompts = Stream(transport), Stream(transport, PROMPTS)
        group.start_soon(tools.run)
        await tools.has(1)
        group.start_soon(prompts.run)
        await prompts.has(1)
        assert isinstance(await transport.request("say", {}), Result)
        assert tools.news == [Acknowledged(TOOLS), ListChanged("tools")]
        assert prompts.news == [Acknowledged(PROMPTS), ListChanged("prompts")]
        assert transport.diagnostics.ignored_notifications == 5
        assert transport.diagnostics.foreign_responses == 0
        group.cancel_scope.cancel()
    assert faults("SubscriptionsListenRequest", sent(tmp_path / "log")[0]) == []


@pytest.mark.parametrize(
    "steps, kind",
    [
        ([said(ACK, END)], Result),
        ([said(ACK, CANCELLED)], AnswerLost),
        ([said(CANCELLED)], AnswerLost),
        ([{"error": {"code": -32601, "message": "no"}}], RemoteError),
        ([said({"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}})], RemoteError),
        ([said(ACK, {"jsonrpc": "2.0", "id": "$id", "result": 7})], AnswerMalformed),
        ([said(ACK), {"kill": "KILL"}], AnswerLost),
    ],
    ids=["response", "cancelled", "cancelled-early", "unknown", "error-without-id", "malformed", "dies"],
)
async def test_every_end_is_told_apart_and_nothing_is_sent_for_it(
    reaper: Reaper, tmp_path: Path, steps: list[dict[str, Any]], kind: type[Any]
) -> None:
    script = {"log": str(tmp_path / "log"), "on": {"subscriptions/listen": steps}}
    async with opened(reaper, script, Losses(), patience=QUICK) as transport:
        stream = Stream(transport)
        await stream.run()
        assert isinstance(stream.end, kind)
    assert [each["method"] for each in sent(tmp_path / "log")] == ["subscriptions/listen"]


async def test_cancelling_a_stream_sends_exactly_one_notification_and_late_news_are_dropped(
    reaper: Reaper, tmp_path: Path
) -> None:
    late = said(changed("tools", 1), {**END, "id": 1})
    script = {
        "log": str(tmp_path / "log"),
        "on": {"subscriptions/listen": [said(ACK)], "notifications/cancelled": [late], "say": [OK]},
    }
    async with opened(reaper, script) as transport:
        stream = Stream(transport)
        async with anyio.create_task_group() as group:
            group.start_soon(stream.run)
            await stream.has(1)
            stream.scope.cancel()
        assert isinstance(await transport.request("say", {}), Result)
        assert stream.news == [Acknowledged(TOOLS)]
        assert transport.diagnostics.ignored_notifications == 1
        assert transport.diagnostics.foreign_responses == 1
    assert methods(tmp_path) == ["subscriptions/listen", "notifications/cancelled", "say"]
    assert sent(tmp_path / "log")[1]["params"]["requestId"] == 1


async def test_once_the_close_has_begun_nothing_is_sent_for_streams(reaper: Reaper, tmp_path: Path) -> None:
    script = {"log": str(tmp_path / "log"), "on": {"subscriptions/listen": [said(ACK)]}}
    async with opened(reaper, script) as transport:
        streams = [Stream(transport) for _ in range(3)]
        async with anyio.create_task_group() as group:
            for each in streams:
                group.start_soon(each.run)
                await each.has(1)
            transport.begin_close()
            streams[0].scope.cancel()
            await transport.close()
        assert streams[0].end is None
        assert [type(each.end) for each in streams[1:]] == [AnswerLost, AnswerLost]
        await (late := Stream(transport)).run()
        assert isinstance(late.end, RequestNotSent)
    assert [each["method"] for each in sent(tmp_path / "log")] == ["subscriptions/listen"] * 3


@pytest.mark.spec("connection")
async def test_an_error_without_an_id_never_means_a_stream_that_stands(reaper: Reaper) -> None:
    nameless = said({"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}})
    script = {"on": {"subscriptions/listen": [said(ACK)], "say": [nameless]}}
    async with opened(reaper, script) as transport, anyio.create_task_group() as group:
        stream = Stream(transport)
        group.start_soon(stream.run)
        await stream.has(1)
        assert isinstance(await transport.request("say", {}), RemoteError)
        assert stream.end is None
        group.cancel_scope.cancel()


async def test_an_observer_that_fails_is_heard_by_its_stream_alone(reaper: Reaper) -> None:
    def fail(_: News) -> None:
        raise RuntimeError("a bug")

    script = {"on": {"subscriptions/listen": [said(ACK)], "say": [OK]}}
    async with opened(reaper, script) as transport:
        with pytest.raises(RuntimeError):
            await transport.listen(TOOLS, fail)
        assert isinstance(await transport.request("say", {}), Result)


@pytest.mark.spec("shutdown")
async def test_a_connection_replaces_its_stream_with_one_cancellation_and_retires_it_with_none(
    reaper: Reaper, tmp_path: Path
) -> None:
    capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
    found = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities}
    everything = notification(ACKNOWLEDGED, notifications={**BOTH, "resourceSubscriptions": ["a:"]})
    script = {
        "log": str(tmp_path / "log"),
        "on": {
            "server/discover": [{"result": found}],
            "tools/list": [{"result": {"tools": []}}],
            "resources/list": [{"result": {"resources": []}}],
            "resources/templates/list": [{"result": {"resourceTemplates": []}}],
            "subscriptions/listen": [said(everything)],
        },
    }
    terms = Terms(5000, CatalogLimits(10, 1000), anyio.Lock, Backoff(), WatchTerms(settling=0.0))
    start = opener(reaper, str(SCRIPTED_STDIO), json.dumps(script))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            connection = ServerConnection(
                Peer("p", "stdio"), start, terms, group=group, on_change=lambda _: None
            )
            await connection.prepare()
            connection.watch.set_resources(["a:"])
            await eventually(lambda: connection.watch.granted.resources)
            await eventually(lambda: methods(tmp_path)[-1] == "notifications/cancelled")
            assert await connection.retire() is None
    assert sorted(methods(tmp_path)) == [
        "notifications/cancelled",
        "resources/list",
        "resources/templates/list",
        "server/discover",
        "subscriptions/listen",
        "subscriptions/listen",
        "tools/list",
    ]
    cancelled = next(each for each in sent(tmp_path / "log") if each["method"] == "notifications/cancelled")
    assert cancelled["params"]["requestId"] == 2
    assert methods(tmp_path)[:2] == ["server/discover", "subscriptions/listen"]


def methods(tmp_path: Path) -> list[str]:
    return [each["method"] for each in sent(tmp_path / "log")]
