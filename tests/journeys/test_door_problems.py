"""What the doors refuse before a run begins, and the Problems of a daemon in trouble. SPEC §problems."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import anyio
import httpx2
import pytest

from tests.support.daemon import Daemon, run_input
from tests.support.peers.programs import scripted_definition

pytestmark = [pytest.mark.timeout(180), pytest.mark.spec("problems")]

Json = dict[str, Any]
LIST = {"kind": "workspace.mcp.list"}
BODY = json.dumps(run_input("w", LIST)).encode()
ACTION = json.dumps(LIST).encode()
JSON = {"Content-Type": "application/json"}
ACTIONS = "/v1/workspaces/w/actions"


def require(answer: httpx2.Response, status: int, code: str) -> Json:
    """Return the Problem after checking all that every Problem says."""
    problem: Json = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["type"] == f"https://problems.plurnk.dev/mcp/management/{code}"
    assert (problem["stage"], problem["retryable"]) == ("management", status in {429, 503})
    assert "outcome" not in problem
    return problem


@pytest.mark.spec("security", "agui")
@pytest.mark.parametrize("path, body", [("/", BODY), ("/agui", BODY), (ACTIONS, ACTION)])
@pytest.mark.parametrize(
    "headers, status, code",
    [
        ({"Authorization": "Bearer wrong"}, 401, "unauthenticated"),
        ({"Host": "rebound.example"}, 403, "host-refused"),
        ({"Origin": "https://page.example"}, 403, "origin-refused"),
        ({"Content-Type": "text/plain"}, 415, "media-type-unsupported"),
    ],
)
async def test_what_may_not_come_in_is_refused_at_each_door(
    daemon: Daemon, path: str, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    async with daemon.client() as client:
        answer = await client.post(path, content=body, headers={**JSON, **headers})
    require(answer, status, code)
    assert ("www-authenticate" in answer.headers) == (status == 401)


@pytest.mark.spec("limits", "agui")
@pytest.mark.parametrize("path", ["/", ACTIONS])
async def test_a_body_that_is_none_is_refused_at_each_door(daemon: Daemon, path: str) -> None:
    async with daemon.client() as client:
        malformed = await client.post(path, content=b"{", headers=JSON)
        large = await client.post(path, content=b" " * (4 * 1024 * 1024 + 1), headers=JSON)
        # Nothing that a client sends is expanded.
        encoded = await client.post(
            path, content=gzip.compress(BODY), headers={**JSON, "Content-Encoding": "gzip"}
        )
    assert require(malformed, 422, "input-malformed")["errors"]
    assert require(encoded, 422, "input-malformed")["errors"]
    assert require(large, 413, "body-too-large")["setting"] == "PLURNK_MAX_BODY"


@pytest.mark.spec("agui")
@pytest.mark.parametrize(
    "workspace, code", [(None, "workspace-required"), ("../x", "workspace-invalid"), (7, "workspace-invalid")]
)
async def test_a_run_needs_a_workspace(daemon: Daemon, workspace: Any, code: str) -> None:
    async with daemon.client() as client:
        answer = await client.post("/", json=run_input(workspace, LIST))
    assert require(answer, 400, code)["field"] == "workspace"


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", "/", run_input("theirs", LIST)),
        ("POST", "/", run_input("theirs", {"kind": "workspace.mcp.watch"})),
        ("POST", "/v1/workspaces/theirs/actions", LIST),
        ("POST", "/v1/workspaces/theirs/interactions/int-x", {"status": "cancelled"}),
        ("GET", "/v1/workspaces/theirs/operations/op-x", None),
        ("GET", "/v1/workspaces/theirs/servers", None),
        ("POST", "/v1/workspaces/theirs/servers", {"server": {}}),
        ("PUT", "/v1/workspaces/theirs/servers/p", {"server": {}}),
        ("DELETE", "/v1/workspaces/theirs/servers/p", None),
        ("POST", "/v1/workspaces/theirs/servers/p/reconnect", None),
        ("POST", "/v1/workspaces/theirs/servers/p/oauth/complete", {"callbackUrl": "x"}),
        ("GET", "/v1/workspaces", None),
    ],
)
async def test_a_workspace_token_opens_no_other_workspace_by_any_way(
    daemon: Daemon, method: str, path: str, body: Any
) -> None:
    mine = Daemon(
        daemon.directory, url=daemon.url, token=daemon.spawn_captured("token", "--workspace", "mine")
    )
    async with mine.client() as client:
        answer = await client.request(method, path, json=body)
    require(answer, 403, "workspace-refused")


@pytest.mark.spec("agui", "calls")
async def test_a_run_without_anything_to_do_and_a_resume_of_two_calls(daemon: Daemon, workspace: str) -> None:
    await daemon.attach(workspace, scripted_definition("p"))
    call = {"server": "p", "tool": "echo", "arguments": {"text": "x"}}
    asked = [(await daemon.act(workspace, "workspace.mcp.call", **call))["interrupts"][0] for _ in "ab"]
    accept = {"status": "resolved", "payload": {"decision": "accept"}}
    both = [{"interruptId": each["id"], **accept} for each in asked]
    async with daemon.run(run_input(workspace, None)) as events:
        nothing = [event async for event in events][-1]
    async with daemon.run(run_input(workspace, None, resume=both)) as events:
        incomplete = [event async for event in events][-1]
    problem = nothing["result"]["problem"]
    assert (problem["code"], problem["status"], problem["field"]) == (
        "action-required",
        400,
        "forwardedProps.plurnk.action",
    )
    assert (incomplete["type"], incomplete["code"]) == ("RUN_ERROR", "resume-incomplete")
    problem = incomplete["metadata"]["plurnk"]["problem"]
    assert (problem["status"], problem["stage"], problem["outcome"]) == (400, "operation", "not-sent")
    async with daemon.run(run_input(workspace, None, resume=both[:1])) as events:
        assert [event async for event in events][-1]["outcome"] == {"type": "success"}


@pytest.mark.spec("limits", "agui")
async def test_a_stream_too_many_is_refused_before_it_begins(new_daemon: Callable[..., Daemon]) -> None:
    daemon = await new_daemon({"PLURNK_MAX_STREAMS": "1"}).start()
    async with daemon.run(run_input("w", {"kind": "workspace.mcp.watch"})) as events:
        await anext(events)
        async with daemon.client() as client:
            answer = await client.post("/", json=run_input("w", LIST))
    problem = require(answer, 429, "too-many")
    assert (problem["limit"], problem["setting"]) == (1, "PLURNK_MAX_STREAMS")
    assert answer.headers["retry-after"]


@pytest.mark.spec("state", "shutdown")
async def test_a_store_that_is_gone_and_a_daemon_that_goes(new_daemon: Callable[..., Daemon]) -> None:
    daemon = await new_daemon({}).start()
    (daemon.home / "plurnk.db").rename(daemon.home / "moved.db")
    answer = await daemon.post("w", "workspace.mcp.attach", server=scripted_definition("p"))
    require(answer, 503, "store-unavailable")
    assert answer.headers["retry-after"]
    watched: list[httpx2.Response] = []
    told: list[Json] = []

    async def watch() -> None:
        watched.append(await daemon.post("w", "workspace.mcp.watch", seconds=60))

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        async with daemon.run(run_input("w", {"kind": "workspace.mcp.watch"})) as events:
            await anext(events)
            assert await daemon.stop() == 0
            told += [event async for event in events]
    require(watched[0], 503, "shutting-down")
    custom, finished = told[-2:]
    assert custom["value"]["problem"]["code"] == "shutting-down"
    assert (finished["type"], finished["outcome"]) == ("RUN_FINISHED", {"type": "cancelled"})
