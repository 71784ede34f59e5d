"""Calls, reads and cancels against a real MCP server over both transports, through our own connections."""

from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from app.connections.connector import Connector
from app.core.addresses import resource_address
from app.core.definitions import parse_definition
from app.core.events import OperationProgressed, RunEvent, ToolCallEnded, ToolCallStarted
from app.core.interrupts import ResumeEntry
from app.core.masking import Mask
from app.core.operation_problems import OperationCancelled, RemoteErrorAnswered, ToolCallFailed
from app.core.problem import Outcome, Problem
from app.operations.board import Board, Boards, Settled, Waiting
from app.operations.reads import complete, read
from app.operations.tool_call import call
from app.settings import Settings
from app.workspaces.manager import WorkspaceManager
from tests.support.board_house import outcome_of
from tests.support.peers.programs import http_definition, http_peer, stdio_definition
from tests.support.temporary_store import temporary_store

READ = ["echo", "add", "count", "hold", "fail", "blow_up"]


@pytest.fixture(params=["stdio", "http"], scope="module")
def definition(request: pytest.FixtureRequest) -> Generator[dict[str, Any]]:
    """Give the definition of the SDK's server over each transport."""
    if request.param == "stdio":
        yield stdio_definition("p", read=READ)
        return
    with http_peer() as url:
        yield http_definition("p", url, read=READ)


@asynccontextmanager
async def board_of(definition: dict[str, Any]) -> AsyncGenerator[Board]:
    """Run a workspace with this one server and give its board."""
    settings = Settings.from_environment({})
    connector = Connector(settings, {}, Mask())
    async with AsyncExitStack() as stack:
        boards = Boards(settings)
        manager = WorkspaceManager(
            settings=settings,
            defaults={"p": parse_definition(definition)},
            store=await stack.enter_async_context(temporary_store()),
            connector=connector,
            kept=boards,
        )
        group = await stack.enter_async_context(anyio.create_task_group())
        await group.start(manager.run)
        yield boards.of(manager.workspace("w"))
        boards.shut_down()
        await manager.shut_down()
        await connector.close()


def ignore(_: RunEvent) -> None:
    """Watch nothing."""


async def result(board: Board, tool: str, **arguments: Any) -> Any:
    ended = await call(board, "p", tool, arguments, observe=ignore)
    assert isinstance(ended, Settled)
    return ended.result


@pytest.mark.spec("calls")
async def test_results_errors_and_structure_come_back(definition: dict[str, Any]) -> None:
    async with board_of(definition) as board:
        assert (await result(board, "echo", text="é"))["content"] == [{"type": "text", "text": "é"}]
        assert (await result(board, "add", a=1, b=2))["structuredContent"] == {"total": 3}
        failed = await result(board, "fail", message="E-17")
        assert failed["isError"] is True
        assert "E-17" in failed["content"][0]["text"]


@pytest.mark.spec("calls")
async def test_progress_comes_between_the_start_and_the_result(definition: dict[str, Any]) -> None:
    events: list[RunEvent] = []
    async with board_of(definition) as board:
        await call(board, "p", "count", {"steps": 3}, observe=events.append)
    kinds = [type(event) for event in events]
    assert (kinds[0], kinds[-1]) == (ToolCallStarted, ToolCallEnded)
    assert [each.progress.progress for each in events if isinstance(each, OperationProgressed)] == [1, 2, 3]


@pytest.mark.spec("calls")
async def test_a_cancelled_call_is_cancelled_at_the_peer(definition: dict[str, Any], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with board_of(definition) as board, anyio.create_task_group() as group:
        ended: list[Any] = []

        async def caller() -> None:
            ended.append(await outcome_of(lambda: result(board, "hold", gate=str(gate))))

        group.start_soon(caller)
        await exists(f"{gate}.entered")
        (operation,) = board._open.all()
        board.cancel(operation.id)
        await exists(f"{gate}.cancelled")
        assert isinstance(ended[0], OperationCancelled)
        assert ended[0].outcome is Outcome.UNKNOWN
        assert (await result(board, "echo", text="still here"))["isError"] is False


async def exists(path: str) -> None:
    """Return once the other process made the file."""
    with anyio.fail_after(20):
        while not await anyio.Path(path).exists():
            await anyio.sleep(0.01)


@pytest.mark.spec("problems")
async def test_a_peer_that_dies_leaves_the_effect_unknown() -> None:
    async with board_of(stdio_definition("p", read=READ)) as board:
        with pytest.raises(ToolCallFailed) as raised:
            await result(board, "blow_up", code=3)
        assert raised.value.outcome is Outcome.UNKNOWN


@pytest.mark.spec("policy")
async def test_a_proposal_is_accepted_and_sent(definition: dict[str, Any]) -> None:
    async with board_of(definition) as board:
        waiting = await call(board, "p", "variable", {"name": "NOTHING"}, observe=ignore)
        assert isinstance(waiting, Waiting)
        accept = ResumeEntry(waiting.interrupts[0].id, "resolved", {"decision": "accept"})
        ended = await board.resume([accept], observe=ignore)
        assert isinstance(ended, Settled)
        assert ended.result["content"] == [{"type": "text", "text": "(unset)"}]


@pytest.mark.spec("addresses")
async def test_resources_prompts_and_completions_are_read(definition: dict[str, Any]) -> None:
    async with board_of(definition) as board:
        welcome = await read(board, resource_address("p", "memo://welcome"), observe=ignore)
        assert isinstance(welcome, Settled)
        contents: Any = welcome.result["contents"]
        assert contents[0]["text"] == "welcome"
        greeting = await read(board, "p:///prompts/greet?name=Ada&tone=dry%20%2B", observe=ignore)
        assert isinstance(greeting, Settled)
        messages: Any = greeting.result["messages"]
        assert messages[0]["content"]["text"] == "Write a dry + greeting for Ada."
        asked: Any = {
            "ref": {"type": "ref/prompt", "name": "greet"},
            "argument": {"name": "name", "value": "a"},
        }
        completed = await complete(board, "p", asked, observe=ignore)
        assert isinstance(completed, Settled)
        assert completed.result == {"completion": {"values": ["ada", "alan"], "total": 2, "hasMore": False}}


@pytest.mark.spec("problems")
async def test_the_peers_own_error_is_shown_as_remote(definition: dict[str, Any]) -> None:
    async with board_of(definition) as board:
        with pytest.raises(Problem) as raised:
            await read(board, resource_address("p", "memo://nowhere/else/at/all"), observe=ignore)
        assert isinstance(raised.value, RemoteErrorAnswered)
        remote: Any = raised.value.facts["remote"]
        assert isinstance(remote["code"], int)
