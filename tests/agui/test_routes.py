"""What is answered by an HTTP status before a stream, and what is not."""

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from tests.support.agui_events import parse_stream, verify_run
from tests.support.doors_house import TOKEN, call, doors_house, run_input, text_result
from tests.support.eventually import eventually

pytestmark = pytest.mark.spec("agui")

LIST = {"kind": "workspace.mcp.list"}


@pytest.mark.parametrize("path", ["/", "/agui"])
async def test_both_paths_run(path: str) -> None:
    async with doors_house() as doors:
        events = await doors.run(LIST, path=path)
    assert events[-1]["result"]["ok"] is True


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    "body, status, code",
    [
        ({}, 422, "input-malformed"),
        (run_input(LIST, threadId=7), 422, "input-malformed"),
        (run_input(LIST, workspace=None), 400, "workspace-required"),
        (run_input(LIST, workspace=""), 400, "workspace-required"),
        (run_input(LIST, forwardedProps=None), 400, "workspace-required"),
        (run_input(LIST, forwardedProps="text"), 400, "workspace-required"),
        (run_input(LIST, workspace=".."), 400, "workspace-invalid"),
        (run_input(LIST, workspace="a/b"), 400, "workspace-invalid"),
        (run_input(LIST, workspace="x" * 129), 400, "workspace-invalid"),
        (run_input(LIST, workspace=["w"]), 400, "workspace-invalid"),
    ],
)
async def test_a_run_that_cannot_begin_has_no_stream(body: Any, status: int, code: str) -> None:
    async with doors_house() as doors:
        answer = await doors.post("/", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.spec("security")
async def test_a_workspaces_token_is_valid_for_that_workspace_only() -> None:
    async with doors_house() as doors:
        token = doors.tokens.for_workspace("w")
        own = await doors.post("/", run_input(LIST), token=token)
        other = await doors.post("/", run_input(LIST, workspace="w2"), token=token)
    assert own.status_code == 200
    assert (other.status_code, other.json()["code"]) == (403, "workspace-refused")


async def test_a_run_that_is_not_json_is_refused() -> None:
    async with doors_house() as doors, doors.client() as client:
        plain = await client.post("/", content=b"{}", headers={"Content-Type": "text/plain"})
        broken = await client.post("/", content=b"{", headers={"Content-Type": "application/json"})
    assert (plain.status_code, plain.json()["code"]) == (415, "media-type-unsupported")
    assert (broken.status_code, broken.json()["code"]) == (422, "input-malformed")


@pytest.mark.spec("limits")
async def test_a_body_over_the_limit_is_refused_however_it_comes() -> None:
    async with doors_house(PLURNK_MAX_BODY="1000") as doors, doors.client() as client:
        headers = {"Content-Type": "application/json"}
        whole = await client.post("/", content=b" " * 1001, headers=headers)

        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(30):
                yield b" " * 100

        chunked = await client.post("/", content=chunks(), headers=headers)
    for answer in (whole, chunked):
        assert (answer.status_code, answer.json()["code"], answer.json()["limit"]) == (
            413,
            "body-too-large",
            1000,
        )
        assert answer.headers["connection"] == "close"


@pytest.mark.spec("limits")
async def test_the_stream_too_many_is_refused() -> None:
    async with doors_house(PLURNK_MAX_STREAMS="1") as doors, doors.client() as client:
        watch = run_input({"kind": "workspace.mcp.watch"})
        async with client.stream("POST", "/", json=watch) as first:
            assert first.status_code == 200
            refused = await doors.post("/", run_input(LIST))
        await eventually(lambda: not doors.house.workspace.state.has_listeners)
        assert (await doors.post("/", run_input(LIST))).status_code == 200
    assert (refused.status_code, refused.json()["code"]) == (429, "too-many")
    assert refused.json()["setting"] == "PLURNK_MAX_STREAMS"


@pytest.mark.spec("limits")
async def test_the_workspace_too_many_is_refused_before_the_stream() -> None:
    async with doors_house(PLURNK_MAX_WORKSPACES="1") as doors:
        await doors.run(LIST)
        refused = await doors.post("/", run_input(LIST, workspace="w2"))
    assert (refused.status_code, refused.json()["setting"]) == (429, "PLURNK_MAX_WORKSPACES")


async def test_an_allowed_origin_may_read_the_stream() -> None:
    origin = "https://app.example"
    async with (
        doors_house(PLURNK_ALLOWED_ORIGINS=f'["{origin}"]') as doors,
        doors.client(Origin=origin) as client,
    ):
        answer = await client.post("/", json=run_input(LIST))
    assert answer.headers["access-control-allow-origin"] == origin
    assert answer.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize(
    "method, path", [("GET", "/"), ("PUT", "/agui"), ("OPTIONS", "/"), ("DELETE", "/agui")]
)
async def test_another_method_is_a_problem_too(method: str, path: str) -> None:
    async with doors_house() as doors:
        answer = await doors.post(path, method=method)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_hundred_runs_at_once_each_end_once() -> None:
    async with doors_house() as doors, doors.client() as client:
        await doors.run(LIST)
        ended: list[str] = []

        async def run(index: int) -> None:
            answer = await client.post("/", json=run_input(LIST, threadId=f"thread-{index}"))
            ended.append(verify_run(parse_stream(answer.content))[-1]["threadId"])

        async with anyio.create_task_group() as group:
            for index in range(100):
                group.start_soon(run, index)
    assert sorted(ended) == sorted(f"thread-{index}" for index in range(100))


async def test_the_stream_is_not_buffered() -> None:
    async with doors_house() as doors, doors.client(TOKEN) as client:
        await doors.run(LIST)
        async with client.stream("POST", "/", json=run_input(call())) as answer:
            received = b""
            with anyio.fail_after(5):
                async for chunk in answer.aiter_raw():
                    received += chunk
                    if b"TOOL_CALL_END" in received and b"TOOL_CALL_RESULT" not in received:
                        (await doors.peer.next_request()).result(text_result("now"))
    assert b"TOOL_CALL_RESULT" in received
