"""streamable_http.py: progress, cancelling, closing, and that requests do not harm each other."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio import wait_all_tasks_blocked
from yarl import URL

from app.connections.http_pool import HttpPool
from app.connections.streamable_http import StreamableHttpTransport
from app.connections.transport import Diagnostics
from app.core.answers import (
    Answer,
    AnswerLost,
    HttpRefusal,
    Progress,
    RequestFault,
    RequestNotSent,
    Result,
)
from app.settings import Settings
from tests.support.eventually import eventually
from tests.support.http_way import LIMIT, OK, transport_to, value
from tests.support.scripted_http import (
    HANG,
    PAUSE,
    Reply,
    ScriptedHttp,
    Seen,
    progress_event,
    response_event,
    scripted_http,
    stream,
    text_result,
)


@pytest.mark.spec("calls")
async def test_progress_under_our_token_reaches_the_caller_before_the_answer() -> None:
    seen: list[Progress] = []
    chunks = [progress_event(1, total=2), progress_event(5, token="srv-made"), progress_event(2, token='"1"')]
    reply = stream(*chunks, progress_event(2, total=2), response_event())
    async with scripted_http({"tools/call": reply}) as peer, transport_to(peer) as transport:
        await transport.request("tools/call", {"name": "echo"}, on_progress=seen.append)
        assert peer.seen[0].params["_meta"]["progressToken"] == peer.seen[0].message["id"]
        assert transport.diagnostics == Diagnostics(ignored_progress=2)
    assert seen == [Progress(1.0, 2.0), Progress(2.0, 2.0)]


async def test_no_token_is_sent_where_nobody_listens() -> None:
    async with (
        scripted_http({"tools/call": stream(progress_event(1), response_event())}) as peer,
        transport_to(peer) as transport,
    ):
        await transport.request("tools/call", {"name": "echo"})
        assert "progressToken" not in peer.seen[0].params["_meta"]
        assert transport.diagnostics.ignored_progress == 1


@asynccontextmanager
async def hanging_call(
    reply: Reply,
) -> AsyncGenerator[tuple[ScriptedHttp, StreamableHttpTransport, anyio.CancelScope, list[object]]]:
    """Give a call that waits for its answer; its outcome is appended once it has one."""
    outcome: list[object] = []
    scope = anyio.CancelScope()
    async with scripted_http({"tools/call": reply}) as peer, transport_to(peer) as transport:

        async def call() -> None:
            try:
                with scope:
                    outcome.append(await transport.request("tools/call", {"name": "echo"}))
                if scope.cancelled_caught:
                    outcome.append("cancelled")
            except RequestFault as fault:
                outcome.append(type(fault))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await peer.has_seen(1)
            yield peer, transport, scope, outcome


HANGING = pytest.mark.parametrize(
    "reply", [stream(": open\n\n", HANG), Reply(raw=[HANG]), stream(progress_event(1), HANG)]
)


@pytest.mark.spec("calls")
@HANGING
async def test_cancelling_the_caller_closes_the_connection(reply: Reply) -> None:
    async with hanging_call(reply) as (peer, _, scope, outcome):
        scope.cancel()
        await peer.seen[0].gone.wait()
    assert outcome == ["cancelled"]


@pytest.mark.spec("connection")
@HANGING
async def test_closing_ends_the_requests_in_flight_and_refuses_later_ones(reply: Reply) -> None:
    async with hanging_call(reply) as (peer, transport, _, outcome):
        assert await transport.close() is None
        assert outcome == [AnswerLost]
        await peer.seen[0].gone.wait()
        with pytest.raises(RequestNotSent):
            await transport.request("tools/call", {"name": "echo"})
        assert await transport.close() is None


class Waiting:
    """An authorization that waits for what never comes, before the request or behind its answer."""

    def __init__(self, phase: str) -> None:
        self.phase = phase
        self.is_waited_for = anyio.Event()

    async def header(self) -> str | None:
        """Wait, or show nothing."""
        return await self._wait() if self.phase == "header" else None

    async def judged(self, answer: Answer, peer: str | None) -> Answer | None:  # noqa: ARG002 the protocol's
        """Wait, or let the answer stand."""
        return await self._wait() if self.phase == "judged" else answer

    async def _wait(self) -> None:
        self.is_waited_for.set()
        await anyio.sleep_forever()


@asynccontextmanager
async def waiting_call(phase: str) -> AsyncGenerator[tuple[StreamableHttpTransport, list[object]]]:
    """Give a call that waits in this phase; how it ended and how often its task is then cancelled is appended."""
    begun = Reply(500 if phase == "refusal" else 200, {"Content-Length": "9"}, "{")
    outcome, waiting, pool = list[object](), Waiting(phase), HttpPool(Settings())
    async with scripted_http({"tools/call": text_result("ok") if phase == "judged" else begun}) as peer:
        url = peer.url.replace("http:", "https:") if phase == "connect" else peer.url
        authorize = (lambda: waiting) if phase in {"header", "judged"} else None
        transport = StreamableHttpTransport(pool, URL(url), {}, message_max=LIMIT, authorize=authorize)

        async def call() -> None:
            task = asyncio.current_task()
            assert task is not None
            try:
                outcome.append(await transport.request("tools/call", {}))
            except RequestFault as fault:
                outcome.append(type(fault))
            outcome.append(task.cancelling())

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            if phase in {"header", "judged"}:
                await waiting.is_waited_for.wait()
            elif phase == "connect":  # A handshake that nobody answers.
                await eventually(lambda: peer.connections)
            else:
                await peer.has_seen(1)
                await wait_all_tasks_blocked()
            yield transport, outcome
        await pool.close()


@pytest.mark.spec("connection")
@pytest.mark.parametrize(
    "phase, fault",
    [
        ("header", RequestNotSent),
        ("connect", RequestNotSent),
        ("body", AnswerLost),
        ("refusal", AnswerLost),
        ("judged", AnswerLost),
    ],
)
async def test_closing_ends_a_request_wherever_it_waits(phase: str, fault: type[RequestFault]) -> None:
    async with waiting_call(phase) as (transport, outcome):
        async with anyio.create_task_group() as group:
            group.start_soon(transport.close)
            await transport.close()
        assert outcome == [fault, 0]


@pytest.mark.spec("connection")
@HANGING
async def test_a_caller_that_leaves_just_before_the_transport_closes_has_left(reply: Reply) -> None:
    async with hanging_call(reply) as (peer, transport, scope, outcome):
        scope.cancel()
        await transport.close()
        await peer.seen[0].gone.wait()
    assert outcome == ["cancelled"]


@pytest.mark.spec("connection")
async def test_one_failing_request_never_harms_another() -> None:
    gate = anyio.Event()
    replies = [
        Reply(raw=[], then="reset"),
        Reply(500),
        stream(": wait\n\n", gate, progress_event(1), then="close"),
        stream(": wait\n\n", gate, response_event()),
    ]
    expected: list[object] = [AnswerLost, HttpRefusal(500), AnswerLost, Result]
    outcomes: list[object] = [None] * 16

    def script(seen: Seen) -> Reply:
        return replies[seen.params["arguments"]["n"] % 4]

    async with scripted_http({"tools/call": script}) as peer, transport_to(peer) as transport:

        async def call(number: int) -> None:
            try:
                answer = await transport.request("tools/call", {"arguments": {"n": number}})
                outcomes[number] = Result if isinstance(answer, Result) else answer
            except RequestFault as fault:
                outcomes[number] = type(fault)

        async with anyio.create_task_group() as group:
            for number in range(16):
                group.start_soon(call, number)
            await peer.has_seen(16)
            gate.set()
    assert outcomes == expected * 4


@pytest.mark.spec("connection")
async def test_a_stream_that_ends_after_its_answer_leaves_its_connection_to_the_next_request() -> None:
    async with (
        scripted_http({"tools/call": stream(response_event(), PAUSE)}) as peer,
        transport_to(peer) as transport,
    ):
        for _ in range(5):
            await transport.request("tools/call", {"name": "echo"})
        assert peer.connections == 1


async def test_a_quiet_stream_is_ended_by_nobody_but_the_caller() -> None:
    gate = anyio.Event()
    reply = stream(": open\n\n", gate, response_event())
    results: list[Answer] = []
    async with scripted_http({"tools/call": reply}) as peer, transport_to(peer) as transport:

        async def call() -> None:
            results.append(await transport.request("tools/call", {"name": "echo"}))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await peer.has_seen(1)
            await transport.request("server/discover", {})
            assert results == []
            gate.set()
    assert value(results[0]) == OK
