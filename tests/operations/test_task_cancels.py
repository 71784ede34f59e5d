"""Telling servers to stop tasks: once, bounded, and waited for only by a daemon that goes down."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from app.core.answers import AnswerLost, RemoteError
from app.operations import task_cancels
from app.operations.task_cancels import TaskCancels
from tests.support.board_house import peers

pytestmark = pytest.mark.spec("calls", "shutdown")


@pytest.mark.parametrize("answer", [AnswerLost("x"), RemoteError(-32602, "unknown task")])
async def test_whatever_the_server_says_it_was_told_once(answer: Any) -> None:
    async with peers() as house:
        cancels = TaskCancels(house.workspace.owner)
        house.peer.automatic = lambda _: answer
        cancels.send(house.peer, "t-1")
        assert len(cancels) == 1
        await cancels.finish()
        assert len(cancels) == 0
        (request,) = house.peer.requests
        assert (request.method, request.params, request.on_progress) == (
            "tasks/cancel",
            {"taskId": "t-1"},
            None,
        )


@pytest.mark.parametrize("bound", ["FINISH_S", "CANCEL_S"])
async def test_a_server_that_does_not_answer_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(task_cancels, bound, 0.05)
    async with peers() as house:
        cancels = TaskCancels(house.workspace.owner)
        cancels.send(house.peer, "t-1")
        with anyio.fail_after(5):
            await cancels.finish()
        assert len(cancels) == (1 if bound == "FINISH_S" else 0)


async def test_a_workspace_that_ended_tells_nobody() -> None:
    async with peers() as house:
        await house.workspace.shut_down()
        await anyio.wait_all_tasks_blocked()
        cancels = TaskCancels(house.workspace.owner)
        cancels.send(house.peer, "t-1")
        assert (len(cancels), house.peer.requests) == (0, [])


async def test_nobody_waits_where_nothing_is_under_way() -> None:
    async with peers() as house:
        finish: Callable[[], Any] = TaskCancels(house.workspace.owner).finish
        await finish()
