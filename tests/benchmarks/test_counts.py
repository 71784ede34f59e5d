"""What one call and one list cost in things that can be counted, which no busy machine makes look worse.

The whole daemon is in this process, before the bench's own backend; the application is called as uvicorn calls it.
Counted is what the daemon and its libraries do, not what the backend does. A bound that no longer holds is a
decision: lower it where the code got cheaper, raise it with a reason.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, cast

import orjson
import pytest

from app.configuration import read
from app.core.masking import Mask
from app.doors import streams
from app.home import Home
from app.main import Daemon, running_daemon
from benchmarks.backend import Backend
from benchmarks.targets import CALL, LIST, TOKEN, http_definition

BENCH = str(Path(__file__).resolve().parent.parent.parent / "benchmarks")
TIMES = 20
Json = dict[str, Any]
Post = Callable[[str, Json], Awaitable[bytes]]


@dataclass
class Counts:
    """What happened during a block, for one request."""

    functions: float = 0
    """Functions written in Python that were called, the resumption of a coroutine among them."""
    encoded: float = 0
    decoded: float = 0
    tasks: float = 0
    requests: float = 0
    _events: Counter[str] = field(default_factory=Counter[str])

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if frame.f_code.co_filename.startswith((BENCH, __file__)):
            return
        if event == "call":
            self._events["functions"] += 1
        elif event == "c_call" and arg is orjson.dumps:
            self._events["encoded"] += 1
        elif event == "c_call" and arg is orjson.loads:
            self._events["decoded"] += 1

    def started(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        self._events["tasks"] += 1
        return asyncio.Task(coroutine, loop=loop, **options)

    def end(self) -> None:
        for name in ("functions", "encoded", "decoded", "tasks"):
            setattr(self, name, self._events[name] / TIMES)
        self.requests = sum(Backend.counts.values()) / TIMES


@asynccontextmanager
async def daemon_before_servers(directory: Path, number: int) -> AsyncGenerator[tuple[Daemon, Post]]:
    environment = {**os.environ, "PLURNK_HOME": str(directory / "home"), "PLURNK_TOKEN": TOKEN}
    configuration, mask = read(environment, directory), Mask()
    server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with Home.open(configuration.settings.home, configuration.environment.values) as home:
        async with server, running_daemon(configuration, home, mask) as daemon:

            async def post(path: str, body: Json) -> bytes:
                return await answered(daemon, path, orjson.dumps(body))

            for each in range(number):
                definition = http_definition(f"s{each}", f"http://127.0.0.1:{port}/s/{each}")
                await post(ACTIONS, {"kind": "workspace.mcp.attach", "server": definition})
            yield daemon, post
            await daemon.end()


ACTIONS = "/v1/workspaces/bench/actions"


async def answered(daemon: Daemon, path: str, body: bytes) -> bytes:
    """Return the body of the answer to one request of the operator's."""
    messages, sent = [{"type": "http.request", "body": body, "more_body": False}], list[Any]()
    headers = [(b"host", b"127.0.0.1:1"), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [*headers, (b"authorization", f"Bearer {TOKEN}".encode())],
    }

    async def receive() -> Any:
        if not messages:
            await asyncio.Event().wait()  # the client stays
        return messages.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    await daemon.app(scope, receive, send)
    assert sent[0]["status"] < 300, sent
    return b"".join(message.get("body", b"") for message in sent)


async def counted(post: Post, path: str, body: Json) -> Counts:
    """Return what one request costs, once everything is warm."""
    for _ in range(3):
        await post(path, body)
    counts, loop = Counts(), asyncio.get_running_loop()
    Backend.counts.clear()
    loop.set_task_factory(cast("Any", counts.started))
    sys.setprofile(counts.profile)
    try:
        for _ in range(TIMES):
            await post(path, body)
    finally:
        sys.setprofile(None)
        loop.set_task_factory(None)
    counts.end()
    return counts


@pytest.fixture(autouse=True)
def _nobody_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a request starts beside work that takes long is no part of a call that is answered at once.
    monkeypatch.setattr(streams, "ATTEND_AFTER_S", 60.0)


@pytest.mark.spec("calls")
async def test_a_call_is_one_request_and_no_task_and_encodes_each_thing_once(tmp_path: Path) -> None:
    async with daemon_before_servers(tmp_path, 1) as (_, post):
        counts = await counted(post, ACTIONS, CALL)
    assert counts.requests == 1
    assert counts.tasks == 0
    assert counts.decoded == 2  # what the client sent, what the server answered
    assert (
        counts.encoded == 3
    )  # the size of the arguments, the request to the server, the answer that is sent and kept
    assert counts.functions <= 375


@pytest.mark.spec("agui")
async def test_a_run_of_a_call_encodes_each_event_once(tmp_path: Path) -> None:
    run = {"threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": []}
    body = {**run, "forwardedProps": {"plurnk": {"workspace": "bench", "action": CALL}}}
    async with daemon_before_servers(tmp_path, 1) as (_, post):
        events = (await post("/", body)).count(b"data: ")
        counts = await counted(post, "/", body)
    assert counts.requests == 1
    assert counts.tasks == 0
    # As with REST the size, the request and the result, to be repeated; what two events have in common, and the
    # arguments as text, once.
    assert counts.encoded == events + 5
    assert counts.functions <= 470


@pytest.mark.spec("lifecycle", "prepare")
async def test_a_reconnection_is_two_requests_and_two_tasks(tmp_path: Path) -> None:
    async with daemon_before_servers(tmp_path, 1) as (_, post):
        counts = await counted(post, ACTIONS, {"kind": "workspace.mcp.reconnect", "name": "s0"})
    assert counts.requests == 2
    assert counts.tasks == 2  # the commit, which nobody leaves half done, and the end of the old connection
    assert counts.functions <= 1580


@pytest.mark.spec("actions")
async def test_a_list_asks_no_server(tmp_path: Path) -> None:
    async with daemon_before_servers(tmp_path, 2) as (_, post):
        counts = await counted(post, ACTIONS, LIST)
    assert (counts.requests, counts.tasks) == (0, 0)
    assert (counts.encoded, counts.decoded) == (1, 1)
    assert counts.functions <= 200
