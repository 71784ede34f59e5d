"""How requests, children and daemons end. SPEC §connection, §calls, §shutdown. S5, L2, X2, D1, E2."""

import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from app.connections.reaper import Reaper
from app.connections.stdio import StdioTransport
from app.connections.transport import Lost
from app.core.answers import AnswerLost, RequestFault, RequestNotSent, Result
from app.core.json_value import JsonObject
from app.core.problems import DefinitionInvalid, ServerUnavailable
from tests.support.children import SCRIPTED_STDIO, descriptor_count, run_program, text_of
from tests.support.processes import until_exists, until_gone
from tests.support.stdio_transports import OK, QUICK, SECRET, Losses, fault, opened, opener, sent

pytestmark = [pytest.mark.spec("connection"), pytest.mark.anyio]

DAEMON = """
import os, sys, anyio
from app.connections.reaper import Reaper
from app.connections.stdio import StdioOpener
from app.core.references import StdioExpanded
async def main():
    expanded = StdioExpanded(sys.executable, tuple(sys.argv[1:]), None, {}, frozenset())
    opener = StdioOpener("p", expanded, os.environ, Reaper(), lambda text: text, {}, 1 << 20)
    transport = await opener(lambda lost: None)
    await transport.request("a", {})
    print(transport.pid, flush=True)
    await anyio.sleep_forever()
anyio.run(main, backend_options={"use_uvloop": True})
"""


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def reaper() -> AsyncIterator[Reaper]:
    reaper = Reaper()
    yield reaper
    assert reaper.groups == frozenset()
    await reaper.close()


@pytest.mark.spec("calls")
async def test_a_cancelled_request_is_told_once_and_its_late_answer_dropped(
    reaper: Reaper, tmp_path: Path
) -> None:
    log, entered, gate = tmp_path / "log", tmp_path / "entered", tmp_path / "gate"
    slow = [{"touch": str(entered)}, {"wait": str(gate)}, OK]
    async with opened(reaper, {"on": {"slow": slow, "b": [OK]}, "log": str(log)}) as transport:
        async with anyio.create_task_group() as group:
            group.start_soon(transport.request, "slow", {})
            await until_exists(entered)
            group.cancel_scope.cancel()
        gate.touch()
        assert isinstance(await transport.request("b", {}), Result)
        assert transport.diagnostics.foreign_responses == 1
    cancelled = [each for each in sent(log) if each["method"] == "notifications/cancelled"]
    assert [each["params"]["requestId"] for each in cancelled] == [1]
    assert "id" not in cancelled[0]


async def test_an_error_without_an_id_may_mean_the_cancellation_and_harms_nobody(
    reaper: Reaper, tmp_path: Path
) -> None:
    entered = tmp_path / "entered"
    complaint = {"raw": '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}\n'}
    async with opened(reaper, {"on": {"slow": [{"touch": str(entered)}], "b": [complaint, OK]}}) as transport:
        async with anyio.create_task_group() as group:
            group.start_soon(transport.request, "slow", {})
            await until_exists(entered)
            group.cancel_scope.cancel()
        assert isinstance(await transport.request("b", {}), Result)
        assert transport.diagnostics.foreign_responses == 1


async def test_a_request_that_was_answered_as_its_caller_left_is_not_cancelled(
    reaper: Reaper, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    async with opened(reaper, {"on": {"a": [OK], "b": [OK]}, "log": str(log)}) as transport:
        async with anyio.create_task_group() as group:
            group.start_soon(transport.request, "a", {})
            await anyio.lowlevel.checkpoint()
            ((_, flight),) = transport._flights
            flight.settled.add_done_callback(lambda _: group.cancel_scope.cancel())
        await transport.request("b", {})
    assert [each["method"] for each in sent(log)] == ["a", "b"]


async def test_a_child_that_does_not_read_holds_only_who_asks_it(reaper: Reaper, tmp_path: Path) -> None:
    log, gate = tmp_path / "log", tmp_path / "gate"
    script = {"start": [{"wait": str(gate)}], "on": {"a": [OK], "b": [OK]}, "log": str(log)}
    big: JsonObject = {"text": "x" * 300_000}
    async with opened(reaper, script) as transport:
        assert transport._child is not None
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(transport.request, "a", big)
            await anyio.wait_all_tasks_blocked()
            assert 0 < transport._child.stdin.waiting_bytes < 700_000
            group.cancel_scope.cancel()
        gate.touch()
        assert isinstance(await transport.request("b", {}), Result)
    messages = [(each["method"], each.get("id"), each["params"].get("requestId")) for each in sent(log)]
    assert messages[:2] == [("a", 1, None), ("notifications/cancelled", None, 1)]
    assert [each for each in messages if each[0] == "a"] == [("a", 1, None)], "the others never left"
    assert messages[-1][0] == "b"


@pytest.mark.parametrize(
    "step, exit_status, name",
    [({"kill": "KILL"}, None, "SIGKILL"), ({"exit": 0}, 0, None), ({"exit": 9}, 9, None)],
)
async def test_death_settles_every_request_at_once_and_tells_how(
    reaper: Reaper, step: dict[str, Any], exit_status: int | None, name: str | None
) -> None:
    losses = Losses()
    faults: list[RequestFault] = []
    script = {"on": {"b": [{"err": f"fatal: {SECRET}\n"}, step]}}

    async def ask(transport: StdioTransport, method: str) -> None:
        faults.append(await fault(transport, method))
        assert losses[0].stderr == "fatal: ***", "who was settled finds the loss told"

    async with opened(reaper, script, losses) as transport:
        async with anyio.create_task_group() as group:
            for method in ("a", "a", "b"):
                group.start_soon(ask, transport, method)
        assert [type(each) for each in faults] == [AnswerLost] * 3
        assert isinstance(await fault(transport, "a"), RequestNotSent)
        how = f"ended with status {exit_status}" if name is None else f"was ended by {name}"
        lost = Lost(f"the process {how}", exit_status, name, "fatal: ***")
        assert transport.account("whatever") == lost
    assert losses == [lost]


async def test_a_closed_stdout_is_a_death_after_a_short_grace(reaper: Reaper) -> None:
    losses = Losses()
    script = {"on": {"a": [{"close": "stdout"}, {"sleep": 600}]}}
    async with opened(reaper, script, losses, patience=QUICK) as transport:
        assert isinstance(await fault(transport, "a"), AnswerLost)
    assert losses == [Lost("the process closed its standard output")]


async def test_a_closed_stdin_is_a_death_and_nothing_was_sent(reaper: Reaper, tmp_path: Path) -> None:
    ready, losses = tmp_path / "ready", Losses()
    script = {"start": [{"close": "stdin"}, {"touch": str(ready)}, {"sleep": 600}]}
    async with opened(reaper, script, losses, patience=QUICK) as transport:
        await until_exists(ready)
        assert isinstance(await fault(transport, "a"), RequestNotSent)
        await losses.told.wait()
    assert losses == [Lost("the process closed its standard input")]


async def test_the_last_answer_before_the_death_arrives_even_without_its_newline(reaper: Reaper) -> None:
    raw = '{"jsonrpc":"2.0","id":$id,"result":{"ok":true}}'
    async with opened(reaper, {"on": {"a": [{"raw": raw}, {"exit": 0}]}}) as transport:
        assert isinstance(await transport.request("a", {}), Result)


async def test_a_cut_answer_is_lost(reaper: Reaper) -> None:
    raw = '{"jsonrpc":"2.0","id":$id,"result":{"ok":'
    async with opened(reaper, {"on": {"a": [{"raw": raw}, {"exit": 0}]}}) as transport:
        assert isinstance(await fault(transport, "a"), AnswerLost)


async def test_what_never_left_when_the_child_died_is_not_sent(reaper: Reaper, tmp_path: Path) -> None:
    gate, faults = tmp_path / "gate", list[type[RequestFault]]()
    script = {"start": [{"wait": str(gate)}, {"exit": 1}]}

    async def ask(transport: StdioTransport, size: int) -> None:
        with pytest.raises(RequestFault) as caught:
            await transport.request("a", {"text": "x" * size})
        faults.append(type(caught.value))

    async with opened(reaper, script) as transport, anyio.create_task_group() as group:
        for size in (100_000, 1000, 1_000_000, 5):
            group.start_soon(ask, transport, size)
            await anyio.lowlevel.checkpoint()
        gate.touch()
    assert sorted(each.__name__ for each in faults) == ["AnswerLost"] + ["RequestNotSent"] * 3


async def test_close_settles_what_is_in_flight_and_tells_no_loss(reaper: Reaper) -> None:
    losses, faults = Losses(), list[RequestFault]()
    async with opened(reaper, {}, losses) as transport:

        async def ask() -> None:
            faults.append(await fault(transport, "a"))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await anyio.lowlevel.checkpoint()
            assert await transport.close() is None
        assert isinstance(await fault(transport, "a"), RequestNotSent)
    assert [type(each) for each in faults] == [AnswerLost]
    assert losses == []


@pytest.mark.parametrize(
    "command, cwd, field",
    [
        ("/nonexistent/x", None, "command"),
        (sys.executable, "/nonexistent/dir", "cwd"),
        ("{tmp}/no-interpreter", None, "command"),
        ("{tmp}/broken-binary", None, "command"),
    ],
)
async def test_a_child_that_cannot_be_started_names_the_field_and_leaves_nothing(
    reaper: Reaper, tmp_path: Path, command: str, cwd: str | None, field: str
) -> None:
    for name, text in (("no-interpreter", "#!/nonexistent/sh\n"), ("broken-binary", "\x7fELF nonsense")):
        await anyio.Path(tmp_path / name).write_text(text)
        await anyio.Path(tmp_path / name).chmod(0o755)
    before = descriptor_count()
    with pytest.raises(ServerUnavailable) as caught:
        await opener(reaper, command=command.format(tmp=tmp_path), cwd=cwd)(Losses().take)
    assert caught.value.facts == {"server": "p", "transport": "stdio", "field": field}
    assert descriptor_count() == before


async def test_what_the_system_cannot_take_blames_its_field(reaper: Reaper) -> None:
    with pytest.raises(ServerUnavailable) as caught:
        await opener(reaper, "x" * 4_000_000)(Losses().take)
    assert caught.value.facts["field"] == "args"
    with pytest.raises(DefinitionInvalid):
        await opener(reaper, "a\0b")(Losses().take)


@pytest.mark.spec("shutdown")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_killed_daemon_leaves_neither_child_nor_grandchild(
    reaper: Reaper, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "pid"
    script = {"on": {"a": [{"spawn": "stubborn", "pid_file": str(file)}, OK]}, "deaf": ["EOF", "TERM"]}
    daemon = run_program(DAEMON, str(SCRIPTED_STDIO), json.dumps(script))
    assert daemon.stdout is not None
    child = int(await anyio.to_thread.run_sync(daemon.stdout.readline))
    daemon.send_signal(number)
    daemon.communicate()
    await until_gone({child, int(text_of(file))})
