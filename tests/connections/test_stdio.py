"""Requests and answers over a child's standard streams. SPEC §connection. S2, S3, S4, S6, H6, L1."""

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from structlog.testing import capture_logs

from app.connections.reaper import Reaper
from app.connections.transport import Lost
from app.core.answers import AnswerMalformed, AnswerTooLarge, Progress, RemoteError, Result
from tests.support.children import SCRIPTED_STDIO, text_of
from tests.support.stdio_transports import OK, SECRET, Losses, fault, opened, opener, sent

pytestmark = [pytest.mark.spec("connection"), pytest.mark.anyio]


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
async def reaper() -> AsyncIterator[Reaper]:
    reaper = Reaper()
    yield reaper
    assert reaper.groups == frozenset()
    await reaper.close()


async def test_a_request_is_one_stamped_line_with_an_integer_id(reaper: Reaper, tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with opened(reaper, {"on": {"a": [OK], "b": [OK]}, "log": str(log)}) as transport:
        assert await transport.request("a", {"text": "line\nbreak\u2028"}) == Result({"ok": True}, 51)
        await transport.request("b", {})
        assert text_of(log).count("\n") == 2
    messages = sent(log)
    assert [(each["jsonrpc"], each["id"], each["method"]) for each in messages] == [
        ("2.0", 1, "a"),
        ("2.0", 2, "b"),
    ]
    meta = messages[0]["params"].pop("_meta")
    assert messages[0]["params"] == {"text": "line\nbreak\u2028"}
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert "progressToken" not in meta
    assert text_of(log).endswith("EOF\n")


async def test_arguments_environment_and_directory_reach_the_child_unchanged(
    reaper: Reaper, tmp_path: Path
) -> None:
    args = ["-d", "/data/My Docs", '"q"', "*", "", "a\\ b", "$HOME", "`id`"]
    start = opener(
        reaper, str(SCRIPTED_STDIO), '{"on":{"a":[{"args":1}]}}', *args, cwd=str(tmp_path), env={"K": "v w"}
    )
    transport = await start(Losses().take)
    answer = await transport.request("a", {})
    await transport.close()
    assert isinstance(answer, Result)
    environment = answer.value["env"]
    assert isinstance(environment, dict)
    assert (answer.value["args"], answer.value["cwd"]) == (args, str(tmp_path))
    assert environment["K"] == "v w"
    assert environment["PATH"] == os.environ["PATH"]
    assert not any(name.startswith(("PYTEST", "PLURNK", "VIRTUAL_ENV")) for name in environment)


async def test_answers_find_their_requests_in_any_order(reaper: Reaper) -> None:
    async with opened(reaper, {"on": {"later": [{"stash": 1}], "now": [{"unstash": 1}]}}) as transport:
        answers: dict[int, Any] = {}

        async def ask(index: int, method: str) -> None:
            answers[index] = await transport.request(method, {})

        async with anyio.create_task_group() as group:
            for index in range(1, 32):
                group.start_soon(ask, index, "later")
                await anyio.lowlevel.checkpoint()
            group.start_soon(ask, 32, "now")
        assert {index: answer.value["was"] for index, answer in answers.items()} == {
            index: index for index in range(1, 33)
        }


@pytest.mark.parametrize("pieces", [[3, 1, 7], [1] * 40, [45]])
async def test_one_answer_in_many_writes(reaper: Reaper, pieces: list[int]) -> None:
    async with opened(reaper, {"on": {"a": [{**OK, "split": pieces}]}}) as transport:
        assert isinstance(await transport.request("a", {}), Result)


async def test_progress_and_answer_in_one_write_arrive_in_order(reaper: Reaper) -> None:
    seen: list[Progress | str] = []
    notify = {"notify": {"progressToken": "$pt", "progress": 1, "total": 2, "message": "half"}, "hold": True}
    async with opened(reaper, {"on": {"a": [notify, OK]}}) as transport:
        await transport.request("a", {}, on_progress=seen.append)
        seen.append("answer")
    assert seen == [Progress(1, 2, "half"), "answer"]


async def test_only_increasing_progress_with_our_own_token_counts(reaper: Reaper) -> None:
    seen: list[float] = []
    tokens: list[Any] = ["$pt", "1", 1.0, True, "srv-made-1", None, 7, [1], {"a": 1}]
    script = [
        {"notify": {"progressToken": token, "progress": 1 + index}} for index, token in enumerate(tokens)
    ]
    values: list[Any] = [1, 0, "2", True, None, 1.5]
    script += [{"notify": {"progressToken": "$pt", "progress": value}} for value in values]
    script += [{"raw": '{"jsonrpc":"2.0","method":"notifications/message","params":{}}\n'}]
    script += [{"raw": '{"jsonrpc":"2.0","id":9,"method":"roots/list"}\n'}, OK]
    late = [{"notify": {"progressToken": 1, "progress": 9}}, OK]
    async with opened(reaper, {"on": {"a": script, "b": late}}) as peer:
        await peer.request("a", {}, on_progress=lambda progress: seen.append(progress.progress))
        await peer.request("b", {})
        found = peer.diagnostics
    assert seen == [1, 1.5]
    assert (found.ignored_progress, found.ignored_notifications, found.peer_requests) == (14, 1, 1)


async def test_an_observer_that_fails_fails_its_own_request_alone(reaper: Reaper) -> None:
    def observe(_progress: Progress) -> None:
        raise ZeroDivisionError

    notify = {"notify": {"progressToken": "$pt", "progress": 1}}
    async with opened(reaper, {"on": {"a": [{"stash": 1}], "b": [notify, {"unstash": 1}]}}) as transport:
        answers: list[Any] = []

        async def innocent() -> None:
            answers.append(await transport.request("a", {}))

        async with anyio.create_task_group() as group:
            group.start_soon(innocent)
            await anyio.lowlevel.checkpoint()
            with pytest.raises(ZeroDivisionError):
                await transport.request("b", {}, on_progress=observe)
        assert len(answers) == 1


@pytest.mark.parametrize(
    "noise",
    [
        "Fake Server version : 1.2.3",
        "",
        "  \r",
        "[]",
        "1",
        '"text"',
        '{"jsonrpc":"1.0","id":1,"result":{}}',
        '{"jsonrpc":"2.0","id":true,"result":{}}',
        "\udcff\udcfe",
        "{" * 5000,
    ],
)
async def test_noise_on_stdout_is_dropped_and_the_reader_goes_on(reaper: Reaper, noise: str) -> None:
    script = {"start": [{"raw": f"{noise}\n"}], "on": {"a": [{"raw": f"{noise}\r\n"}, OK]}}
    async with opened(reaper, script) as transport:
        assert isinstance(await transport.request("a", {}), Result)
        dropped = transport.diagnostics.dropped_lines
        assert dropped == (2 if noise.strip() else 0)
        assert len(transport.dropped_lines) == dropped


async def test_noise_without_a_newline_costs_no_answer(reaper: Reaper) -> None:
    script = {"start": [{"raw": "ready. "}], "on": {"a": [{"raw": "\x1b[?25h"}, OK]}}
    async with opened(reaper, script) as transport:
        for count in (1, 2):
            assert isinstance(await transport.request("a", {}), Result)
            assert transport.diagnostics.dropped_lines == count
    assert [line.rstrip() for line in transport.dropped_lines] == ["ready.", ""]


async def test_the_first_dropped_line_is_logged_and_no_secret_with_it(reaper: Reaper) -> None:
    with capture_logs() as logs:
        async with opened(reaper, {"on": {"a": [{"raw": f"token {SECRET}\nmore\n"}, OK]}}) as transport:
            await transport.request("a", {})
            account = transport.account("no answer came")
    assert [entry for entry in logs if "non-JSON" in entry["event"]] == [
        {
            "event": "non-JSON line on stdout dropped",
            "log_level": "warning",
            "server": "p",
            "line": "token ***",
        }
    ]
    assert account == Lost("no answer came; 2 non-JSON lines on its standard output were dropped")


@pytest.mark.parametrize("identifier", ['"1"', "1.0", "true", "77", "[1]"])
async def test_an_answer_to_another_id_settles_nothing(reaper: Reaper, identifier: str) -> None:
    foreign = f'{{"jsonrpc":"2.0","id":{identifier},"result":{{"foreign":true}}}}\n'
    async with opened(reaper, {"on": {"a": [{"raw": foreign}, OK]}}) as transport:
        assert (await transport.request("a", {})) == Result({"ok": True}, 51)
        found = transport.diagnostics
        assert found.foreign_responses + found.dropped_lines == 1


async def test_an_error_is_an_answer(reaper: Reaper) -> None:
    script = {"on": {"a": [{"error": {"code": -32601, "message": "no", "data": [1]}}]}}
    async with opened(reaper, script) as transport:
        assert await transport.request("a", {}) == RemoteError(-32601, "no", [1])


async def test_an_error_without_an_id_is_the_answer_to_the_only_request(reaper: Reaper) -> None:
    raw = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}\n'
    async with opened(reaper, {"on": {"a": [{"raw": raw}]}}) as transport:
        assert await transport.request("a", {}) == RemoteError(-32700, "parse")


@pytest.mark.parametrize(
    "raw",
    [
        '{"jsonrpc":"2.0","id":$id,"result":7}',
        '{"jsonrpc":"2.0","id":$id,"result":{"a":NaN}}',
        '{"jsonrpc":"2.0","id":$id}',
        '{"jsonrpc":"2.0","id":"$id","error":{"code":1,"message":"m"}}',
        '{"id":$id,"error":"unknown method"}',
        '{"jsonrpc":"2.0","id":null,"result":{}}',
    ],
)
async def test_an_answer_that_is_none_settles_its_request(reaper: Reaper, raw: str) -> None:
    async with opened(reaper, {"on": {"a": [{"raw": f"{raw}\n"}], "b": [OK]}}) as transport:
        assert isinstance(await fault(transport, "a"), AnswerMalformed)
        assert isinstance(await transport.request("b", {}), Result)


@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.spec("limits")
async def test_a_line_over_the_limit_fails_the_request_it_answers_and_no_other(
    reaper: Reaper, order: str
) -> None:
    script = {"on": {"a": [{"pad": 200_000, "order": order}], "b": [{"pad": 60_000}]}}
    async with opened(reaper, script, max_message=100_000) as transport:
        error = await fault(transport, "a")
        assert isinstance(error, AnswerTooLarge)
        assert error.limit == 100_000
        assert isinstance(await transport.request("b", {}), Result)


@pytest.mark.spec("limits")
async def test_an_endless_line_costs_no_memory_and_no_request(reaper: Reaper) -> None:
    script = {"start": [{"raw": "x", "times": 100_000}], "on": {"a": [{"raw": "y\n"}, OK]}}
    async with opened(reaper, script, max_message=50_000) as transport:
        assert isinstance(await transport.request("a", {}), Result)
        assert transport.diagnostics.dropped_lines == 1


async def test_a_line_of_sixteen_mebibytes_is_taken_and_the_loop_goes_on(reaper: Reaper) -> None:
    longest = 0.0

    async def feel() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await anyio.sleep(0.001)
            longest = max(longest, time.monotonic() - before)

    script = {"on": {"a": [{"pad": (16 << 20) - 100}]}}
    async with opened(reaper, script) as transport, anyio.create_task_group() as group:
        group.start_soon(feel)
        answer = await transport.request("a", {})
        group.cancel_scope.cancel()
        assert isinstance(answer, Result)
        assert len(str(answer.value["text"])) == (16 << 20) - 100
    assert longest < 10, "measured at 30 ms; the bound only catches a quadratic reader"


async def test_a_chatty_stderr_blocks_nobody(reaper: Reaper) -> None:
    script = {"on": {"a": [{"errfill": 1 << 20, "ch": "#\r"}, OK]}}
    async with opened(reaper, script) as transport:
        assert isinstance(await transport.request("a", {}), Result)


async def test_thirty_two_requests_are_in_flight_at_once_for_long(reaper: Reaper) -> None:
    async with opened(reaper, {"on": {"a": [OK]}}) as transport:

        async def ask() -> None:
            for _ in range(50):
                assert isinstance(await transport.request("a", {"text": "x" * 100}), Result)

        async with anyio.create_task_group() as group:
            for _ in range(32):
                group.start_soon(ask)
        assert len(transport._flights) == 0
