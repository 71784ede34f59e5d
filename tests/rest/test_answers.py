"""What an action's end is on REST, where no action of this daemon ends so yet."""

from typing import Any

import anyio
import httpx2
import pytest
from starlette.routing import Route

from app.actions.action import ActionOutcome, Done
from app.core.problem import Stage
from app.doors.asgi import Message, Receive, Scope, Send
from app.doors.endpoint import AsgiEndpoint
from app.rest.answers import answer
from tests.support.doors_house import doors_house

pytestmark = pytest.mark.spec("agui")


def route(work: Any, stage: Stage = Stage.OPERATION) -> Route:
    async def handler(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(scope, receive, send, work, stage=stage)

    return Route("/work", AsgiEndpoint(handler))


@pytest.mark.parametrize(
    "result, status",
    [
        ({"status": 202, "authorization": {"url": "https://as.example", "expiresAt": "x"}}, 202),
        ({"status": 201}, 201),
        ({"contents": []}, 200),
        ({"status": "text"}, 200),
    ],
)
async def test_a_result_names_its_status(result: Any, status: int) -> None:
    async def work() -> ActionOutcome:
        return Done(result)

    async with doors_house(routes=[route(work)]) as doors:
        got = await doors.get("/work")
    assert (got.status_code, got.json()) == (status, result)


@pytest.mark.spec("problems")
async def test_a_bug_is_internal_and_tells_only_a_trace() -> None:
    async def work() -> ActionOutcome:
        raise RuntimeError("secret-canary")

    async with doors_house(routes=[route(work)]) as doors:
        got = await doors.get("/work")
    assert (got.status_code, got.json()["code"], got.json()["stage"]) == (500, "internal", "operation")
    assert "secret-canary" not in got.text


async def test_a_result_that_cannot_be_written_is_a_bug() -> None:
    async def work() -> ActionOutcome:
        return Done({"odd": {1, 2}})  # pyright: ignore[reportArgumentType] on purpose

    async with doors_house(routes=[route(work)]) as doors:
        got = await doors.get("/work")
    assert (got.status_code, got.json()["code"]) == (500, "internal")


@pytest.mark.spec("lifecycle")
async def test_what_is_shielded_completes_although_the_client_left() -> None:
    entered, left, committed = anyio.Event(), anyio.Event(), anyio.Event()

    async def work() -> ActionOutcome:
        with anyio.CancelScope(shield=True):
            entered.set()
            await left.wait()
            committed.set()
        return Done({})

    async with doors_house(routes=[route(work, Stage.MANAGEMENT)]) as doors:
        async with anyio.create_task_group() as group:
            group.start_soon(doors.get, "/work")
            await entered.wait()
            group.cancel_scope.cancel()
        left.set()
        with anyio.fail_after(5):
            await committed.wait()


async def test_work_that_shields_nothing_ends_where_it_waits_when_the_client_left() -> None:
    entered, ended = anyio.Event(), anyio.Event()

    async def work() -> ActionOutcome:
        entered.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return Done({})

    async with doors_house(routes=[route(work)]) as doors:
        async with anyio.create_task_group() as group:
            group.start_soon(doors.get, "/work")
            await entered.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            await ended.wait()


async def test_a_client_that_left_is_sent_nothing() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def work() -> ActionOutcome:
        await anyio.sleep_forever()
        return Done({})

    async with doors_house() as doors:
        scope = {"type": "http", "app": doors.app, "headers": []}
        with anyio.fail_after(5):
            await answer(scope, receive, send, work, stage=Stage.OPERATION)
    assert sent == []


@pytest.mark.spec("shutdown")
async def test_what_is_no_call_is_told_at_shutdown_to_try_again() -> None:
    entered, answers = anyio.Event(), list[httpx2.Response]()

    async def work() -> ActionOutcome:
        entered.set()
        await anyio.sleep_forever()
        return Done({})

    async with doors_house(routes=[route(work)]) as doors:

        async def asking() -> None:
            answers.append(await doors.get("/work"))

        async with anyio.create_task_group() as group:
            group.start_soon(asking)
            await entered.wait()
            await doors.streams.end_all()
    assert (answers[0].status_code, answers[0].json()["code"]) == (503, "shutting-down")
    assert answers[0].json()["outcome"] == "unknown"
