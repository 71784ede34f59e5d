"""What one call and one list cost in things that can be counted, which no busy machine makes look worse.

The whole daemon is in this process, before the bench's own backend and behind its own HTTP protocol, on the event loop
that it runs on. Counted is what the daemon and its libraries do, not what the backend and the client do. A bound that
no longer holds is a decision: lower it where the code got cheaper, raise it with a reason.
"""

import asyncio
import logging
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any, cast

import orjson
import pytest
from anyio._backends._asyncio import CancelScope
from uvicorn.server import ServerState

from app import logs
from app.actions import perform
from app.configuration import read
from app.core.masking import Mask
from app.doors import streams
from app.doors.gathered_transport import Clients
from app.doors.http_protocol import HttpProtocol
from app.home import Home
from app.log_lines import LogLines
from app.main import running_daemon
from app.serving import uvicorn_config
from benchmarks.backend import Backend
from benchmarks.load import Client, request
from benchmarks.targets import CALL, LIST, TOKEN, http_definition

BENCH = str(Path(__file__).resolve().parent.parent.parent / "benchmarks")
TIMES = 20
_ENTERED = CancelScope.__enter__.__code__
Json = dict[str, Any]


@dataclass
class Counts:
    """What happened during a block, for one request."""

    times: int
    """How many requests there were."""
    functions: float = 0
    """Functions written in Python that were called, the resumption of a coroutine among them."""
    encoded: float = 0
    decoded: float = 0
    tasks: float = 0
    requests: float = 0
    polls: float = 0
    """How often the system was asked whether peers have hung up."""
    shields: float = 0
    """Scopes that were entered to keep a cancellation from what is inside."""
    _events: Counter[str] = field(default_factory=Counter[str])

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call" and frame.f_code is _ENTERED and frame.f_locals["self"].shield:
            self._events["shields"] += 1
        if frame.f_code.co_filename.startswith((BENCH, __file__)):
            return
        if event == "call":
            self._events["functions"] += 1
        elif event == "c_call" and arg is orjson.dumps:
            self._events["encoded"] += 1
        elif event == "c_call" and arg is orjson.loads:
            self._events["decoded"] += 1
        elif event == "c_call" and getattr(arg, "__qualname__", "") == "poll.poll":
            self._events["polls"] += 1

    def started(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        self._events["tasks"] += 1
        return asyncio.Task(coroutine, loop=loop, **options)

    def leave_out(self, *, tasks: int) -> None:
        self._events["tasks"] -= tasks

    def end(self) -> None:
        for name in ("functions", "encoded", "decoded", "tasks", "polls", "shields"):
            setattr(self, name, self._events[name] / self.times)
        self.requests = sum(Backend.counts.values()) / self.times


@dataclass(frozen=True)
class Served:
    """The daemon behind its own HTTP protocol, in this process, and the client that calls it."""

    client: Client
    url: str

    def post(self, path: str, body: Json) -> bytes:
        """Return the bytes of one request of the operator's."""
        return request(self.url + path, orjson.dumps(body), [("Authorization", f"Bearer {TOKEN}")])

    async def answer(self, path: str, body: Json) -> bytes:
        """Return the whole answer to it."""
        return await self.client.send(self.post(path, body))

    async def counted(self, path: str, body: Json, in_flight: int = 1) -> Counts:
        """Return what one request costs, so many at once, once everything is warm."""
        data = [self.post(path, body)]
        await self.client.run(data, in_flight=in_flight, count=3 * in_flight)
        counts, loop = Counts(TIMES * in_flight), asyncio.get_running_loop()
        Backend.counts.clear()
        loop.set_task_factory(cast("Any", counts.started))
        sys.setprofile(counts.profile)
        try:
            await self.client.run(data, in_flight=in_flight, count=TIMES * in_flight)
        finally:
            sys.setprofile(None)
            loop.set_task_factory(None)
        # Not the client's, one a connection, nor uvicorn's, one a request.
        counts.leave_out(tasks=in_flight + counts.times)
        counts.end()
        return counts


@asynccontextmanager
async def daemon_before_servers(directory: Path, number: int) -> AsyncGenerator[Served]:
    environment = {**os.environ, "PLURNK_HOME": str(directory / "home"), "PLURNK_TOKEN": TOKEN}
    configuration, mask = read(environment, directory), Mask()
    loop, state = asyncio.get_running_loop(), ServerState()
    backend = await loop.create_server(Backend, "127.0.0.1", 0)
    with Home.open(configuration.settings.home, configuration.environment.values) as home:
        async with backend, running_daemon(configuration, home, mask) as daemon:
            config, clients = uvicorn_config(daemon), Clients(state, loop)

            def new_client() -> HttpProtocol:
                return HttpProtocol(config=config, server_state=state, app_state={}, clients=clients)

            async with await loop.create_server(new_client, "127.0.0.1", 0) as server:
                url = f"http://127.0.0.1:{_port(server)}"
                served = Served(Client(url), url)
                for each in range(number):
                    definition = http_definition(f"s{each}", f"http://127.0.0.1:{_port(backend)}/s/{each}")
                    await served.answer(ACTIONS, {"kind": "workspace.mcp.attach", "server": definition})
                yield served
                await daemon.end()
                served.client.close()


def _port(server: asyncio.Server) -> int:
    port: int = server.sockets[0].getsockname()[1]
    return port


ACTIONS = "/v1/workspaces/bench/actions"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """Run on the event loop that the daemon runs on."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture(autouse=True)
def _logs_as_the_daemon_does(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = LogLines(StringIO(), Mask([TOKEN]).mask)
    monkeypatch.setattr(perform, "log", logs.Logger(lines, logging.INFO, logs.render_plain))


@pytest.fixture(autouse=True)
def _nobody_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    # What a request starts beside work that takes long is no part of a call that is answered at once.
    monkeypatch.setattr(streams, "ATTEND_AFTER_S", 60.0)


@pytest.mark.spec("calls")
async def test_a_call_is_one_request_and_no_task_and_encodes_each_thing_once(tmp_path: Path) -> None:
    async with daemon_before_servers(tmp_path, 1) as served:
        counts = await served.counted(ACTIONS, CALL)
    assert counts.requests == 1
    assert counts.tasks == 0
    assert counts.decoded == 2  # what the client sent, what the server answered
    assert (
        counts.encoded == 3
    )  # the size of the arguments, the request to the server, the answer that is sent and kept
    assert counts.functions <= 290
    assert counts.shields == 0  # see concurrency.Stop: nothing would heed it


@pytest.mark.spec("agui")
async def test_a_run_of_a_call_encodes_each_event_once(tmp_path: Path) -> None:
    run = {"threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": []}
    body = {**run, "forwardedProps": {"plurnk": {"workspace": "bench", "action": CALL}}}
    async with daemon_before_servers(tmp_path, 1) as served:
        events = (await served.answer("/", body)).count(b"data: ")
        counts = await served.counted("/", body)
    assert counts.requests == 1
    assert counts.tasks == 0
    # As with REST the size, the request and the result, to be repeated; what two events have in common, and the
    # arguments as text, once.
    assert counts.encoded == events + 5
    assert counts.functions <= 392
    assert counts.shields == 0


@pytest.mark.spec("lifecycle", "prepare")
async def test_a_reconnection_is_two_requests_and_two_tasks(tmp_path: Path) -> None:
    async with daemon_before_servers(tmp_path, 1) as served:
        counts = await served.counted(ACTIONS, {"kind": "workspace.mcp.reconnect", "name": "s0"})
    assert counts.requests == 2
    assert counts.tasks == 2  # the commit, which nobody leaves half done, and the end of the old connection
    assert counts.functions <= 1130
    assert counts.shields > 0


@pytest.mark.spec("actions")
async def test_a_list_asks_no_server(tmp_path: Path) -> None:
    async with daemon_before_servers(tmp_path, 2) as served:
        counts = await served.counted(ACTIONS, LIST)
    assert (counts.requests, counts.tasks) == (0, 0)
    assert (counts.encoded, counts.decoded) == (1, 1)
    assert counts.functions <= 152


@pytest.mark.spec("connection")
async def test_what_many_calls_write_in_one_turn_leaves_together(tmp_path: Path) -> None:
    async with daemon_before_servers(tmp_path, 1) as served:
        alone, many = await served.counted(ACTIONS, CALL), await served.counted(ACTIONS, CALL, in_flight=16)
    assert (alone.requests, alone.polls, many.requests) == (1, 1, 1)
    assert many.polls <= 0.25
    assert many.functions <= alone.functions + 10
