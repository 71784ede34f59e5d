"""The REST twin: the same actions, their result or Problem as body, its status as HTTP status."""

from typing import Any

import anyio
import httpx2
import pytest

from app.core.problems import ProtocolRevisionUnsupported
from tests.support.doors_house import DEFINITION, PROJECT, DoorsHouse, call, doors_house, text_result
from tests.support.eventually import eventually

pytestmark = pytest.mark.spec("agui")

LIST = {"kind": "workspace.mcp.list"}
W = "/v1/workspaces/w"
ACCEPT = {"status": "resolved", "payload": {"decision": "accept"}}


async def answered(doors: DoorsHouse, request: Any, *results: Any) -> httpx2.Response:
    """Return the answer to a request whose peer answers with these results."""
    answers: list[httpx2.Response] = []

    async def asking() -> None:
        answers.append(await request)

    async with anyio.create_task_group() as group:
        group.start_soon(asking)
        for result in results:
            (await doors.peer.next_request()).result(result)
    return answers[0]


@pytest.mark.spec("actions")
async def test_a_result_is_the_body_and_its_status_the_status() -> None:
    async with doors_house({}) as doors:
        doors.house.connector.catalogs["project"] = PROJECT
        attached = await doors.act({"kind": "workspace.mcp.attach", "server": DEFINITION})
        listed = await doors.act(LIST)
    assert (attached.status_code, attached.json()["status"]) == (201, 201)
    assert (listed.status_code, listed.headers["content-type"]) == (200, "application/json")
    assert listed.json() == {"servers": [attached.json()["server"]], "detached": [], "pending": []}


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    "action, status, code, stage",
    [
        (None, 400, "action-required", "management"),
        ([], 400, "parameter-invalid", "management"),
        ({}, 400, "parameter-required", "management"),
        ({"kind": "workspace.mcp.fly"}, 404, "action-unknown", "management"),
        ({"kind": "workspace.mcp.detach", "name": "nobody"}, 404, "server-not-found", "management"),
        (call("nothing"), 404, "tool-not-found", "operation"),
        ({"kind": "workspace.mcp.watch"}, 400, "parameter-required", "management"),
    ],
)
async def test_a_problem_is_problem_json_with_its_status(
    action: Any, status: int, code: str, stage: str
) -> None:
    async with doors_house() as doors:
        answer = await doors.act(action) if action is not None else await _null(doors)
    assert (answer.status_code, answer.json()["code"], answer.json()["stage"]) == (status, code, stage)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == f"https://problems.plurnk.dev/mcp/{stage}/{code}"


@pytest.mark.spec("problems")
async def test_what_is_no_action_is_named_as_the_body() -> None:
    async with doors_house() as doors:
        answers = [await _null(doors), await doors.act([])]
    assert [answer.json()["field"] for answer in answers] == ["body", "body"]
    assert not any("forwardedProps" in answer.text for answer in answers)


async def _null(doors: DoorsHouse) -> httpx2.Response:
    async with doors.client() as client:
        return await client.post(
            f"{W}/actions", content=b"null", headers={"Content-Type": "application/json"}
        )


async def test_a_call_answers_its_result() -> None:
    async with doors_house() as doors:
        await doors.act(LIST)
        answer = await answered(doors, doors.act(call(a=1)), text_result("hi"))
    body = answer.json()
    assert (answer.status_code, body["content"], body["isError"]) == (
        200,
        [{"type": "text", "text": "hi"}],
        False,
    )
    assert set(body) == {"status", "operation", "toolCallId", "isError", "content"}


async def test_interrupts_answer_202_and_their_answers_go_on() -> None:
    async with doors_house() as doors:
        asked = await doors.act(call("deploy"))
        (interrupt,) = asked.json()["interrupts"]
        path = f"{W}/interactions/{interrupt['id']}"
        operation = f"{W}/operations/{asked.json()['operation']}"
        waiting = await doors.get(operation)
        invalid = await doors.post(path, {"status": "resolved", "payload": {"decision": "maybe"}})
        accepted = {"status": "resolved", "payload": {"decision": "accept"}}
        done = await answered(doors, doors.post(path, accepted), text_result("deployed"))
        again = await doors.post(path, accepted)
        conflict = await doors.post(path, {"status": "cancelled"})
        settled = await doors.get(operation)
    assert (asked.status_code, set(asked.json())) == (202, {"operation", "interrupts"})
    assert (waiting.status_code, waiting.json()) == (202, asked.json())
    assert (invalid.status_code, invalid.json()["code"]) == (400, "answer-invalid")
    assert (done.status_code, done.json()["content"][0]["text"]) == (200, "deployed")
    assert (again.status_code, again.json()) == (200, done.json())
    assert (conflict.status_code, conflict.json()["code"]) == (409, "interrupt-conflict")
    assert (settled.status_code, settled.json()) == (200, done.json())


async def test_a_rejected_proposal_is_answered_as_such() -> None:
    async with doors_house() as doors:
        asked = (await doors.act(call("deploy"))).json()
        path = f"{W}/interactions/{asked['interrupts'][0]['id']}"
        rejected = await doors.post(path, {"status": "cancelled", "payload": None, "metadata": None})
    assert rejected.json() == {"status": 200, "operation": asked["operation"], "rejected": True}


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        {"status": "maybe"},
        {"status": "resolved", "extra": 1},
        {"status": "resolved", "metadata": 7},
    ],
)
async def test_a_malformed_answer_is_refused_and_nothing_is_consumed(body: Any) -> None:
    async with doors_house() as doors:
        asked = (await doors.act(call("deploy"))).json()
        path = f"{W}/interactions/{asked['interrupts'][0]['id']}"
        answer = await doors.post(path, body if body is not None else "text")
        assert len(doors.house.board.open_interrupts()) == 1
    assert (answer.status_code, answer.json()["code"]) == (422, "input-malformed")


async def test_an_operation_that_runs_says_so() -> None:
    async with doors_house() as doors:
        await doors.act(LIST)
        async with anyio.create_task_group() as group:
            group.start_soon(doors.act, call())
            request = await doors.peer.next_request()
            (operation,) = doors.house.state("operations")
            answer = await doors.get(f"{W}/operations/{operation}")
            request.result(text_result("hi"))
            working = {"status": 202, "operation": operation, "state": "working"}
            assert (answer.status_code, answer.json()) == (202, working)


@pytest.mark.parametrize("path", [f"{W}/operations/op-x", f"{W}/interactions/int-x"])
async def test_what_is_not_known_is_not_found(path: str) -> None:
    async with doors_house() as doors:
        if "operations" in path:
            answer = await doors.get(path)
        else:
            answer = await doors.post(path, {"status": "cancelled"})
    assert answer.status_code == 404
    assert answer.json()["stage"] == "operation"


async def test_servers_have_paths_of_their_own() -> None:
    async with doors_house({}) as doors:
        doors.house.connector.catalogs["project"] = PROJECT
        attached = await doors.post(f"{W}/servers", {"server": DEFINITION})
        listed = await doors.get(f"{W}/servers")
        nameless = {name: value for name, value in DEFINITION.items() if name != "name"}
        replaced = await doors.post(f"{W}/servers/project", {"server": nameless}, method="PUT")
        reconnected = await doors.post(f"{W}/servers/project/reconnect")
        also = await doors.post(f"{W}/servers/project/reconnect", {})
        detached = await doors.post(f"{W}/servers/project", method="DELETE")
        gone = await doors.post(f"{W}/servers/project", method="DELETE")
    assert [attached.status_code, listed.status_code, replaced.status_code] == [201, 200, 200]
    assert [reconnected.status_code, also.status_code, detached.status_code] == [200, 200, 200]
    assert [server["name"] for server in listed.json()["servers"]] == ["project"]
    assert replaced.json()["server"]["name"] == "project"
    assert detached.json() == {"status": 200, "name": "project", "detached": True}
    assert (gone.status_code, gone.json()["code"]) == (404, "server-not-found")
    assert all(connection.is_retired for connection in doors.house.connector.opened)


@pytest.mark.parametrize(
    "method, path, body, code",
    [
        ("POST", f"{W}/servers", DEFINITION, "parameter-required"),
        ("POST", f"{W}/servers", {}, "parameter-required"),
        ("POST", f"{W}/servers", [], "input-malformed"),
        ("POST", f"{W}/servers", {"kind": "workspace.mcp.detach", "server": DEFINITION}, "parameter-invalid"),
        ("POST", f"{W}/servers", {"server": {**DEFINITION, "name": "Bad Name"}}, "definition-invalid"),
        ("PUT", f"{W}/servers/other", {"server": DEFINITION}, "parameter-invalid"),
        ("PUT", f"{W}/servers/project", {"server": "text"}, "parameter-invalid"),
        ("POST", f"{W}/servers/project/reconnect", {"name": "other"}, "parameter-invalid"),
        ("POST", f"{W}/servers/project/reconnect", {"more": 1}, "parameter-invalid"),
        ("POST", f"{W}/servers/project/oauth/complete", {}, "parameter-required"),
        (
            "POST",
            f"{W}/servers/project/oauth/complete",
            {"callbackUrl": "http://127.0.0.1/cb"},
            "oauth-not-pending",
        ),
    ],
)
async def test_a_twin_judges_what_it_is_given(method: str, path: str, body: Any, code: str) -> None:
    async with doors_house() as doors:
        answer = await doors.post(path, body, method=method)
    assert answer.json()["code"] == code
    assert answer.status_code >= 400


async def test_a_peer_that_is_refused_is_a_bad_gateway() -> None:
    problem = ProtocolRevisionUnsupported("project", "stdio", answered="EOF")
    async with doors_house({}) as doors:
        doors.house.connector.refusal = problem
        answer = await doors.post(f"{W}/servers", {"server": DEFINITION})
    assert (answer.status_code, answer.json()) == (502, problem.document())


@pytest.mark.parametrize(
    "name, status, code",
    [
        ("%2e%2e", 400, "workspace-invalid"),
        (".hidden", 400, "workspace-invalid"),
        ("a%20b", 400, "workspace-invalid"),
        ("%C3%BC", 400, "workspace-invalid"),
        ("x" * 129, 400, "workspace-invalid"),
        ("a%2Fb", 404, None),
        ("A.b_c-1", 200, None),
    ],
)
async def test_a_workspace_is_one_path_segment(name: str, status: int, code: str | None) -> None:
    async with doors_house() as doors:
        answer = await doors.loopback.raw(
            f"GET /v1/workspaces/{name}/servers HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            "Authorization: Bearer operator-token-0123456789\r\n\r\n".encode()
        )
    assert int(answer.split()[1]) == status
    assert code is None or f'"code":"{code}"'.encode() in answer


@pytest.mark.spec("security")
@pytest.mark.parametrize(
    "method, path",
    [
        ("POST", "/actions"),
        ("GET", "/servers"),
        ("POST", "/servers"),
        ("PUT", "/servers/project"),
        ("DELETE", "/servers/project"),
        ("POST", "/servers/project/reconnect"),
        ("POST", "/servers/project/oauth/complete"),
        ("POST", "/interactions/int-1"),
        ("GET", "/operations/op-1"),
    ],
)
async def test_a_workspaces_token_opens_no_other_workspace(method: str, path: str) -> None:
    body = None if method in ("GET", "DELETE") else {"kind": "workspace.mcp.fly"}
    async with doors_house() as doors:
        token = doors.tokens.for_workspace("other")
        answer = await doors.post(f"{W}{path}", body, method=method, token=token)
    assert (answer.status_code, answer.json()["code"]) == (403, "workspace-refused")


@pytest.mark.spec("calls")
async def test_a_client_that_leaves_cancels_its_call() -> None:
    async with doors_house() as doors:
        await doors.act(LIST)
        async with anyio.create_task_group() as group:
            group.start_soon(doors.act, call())
            await doors.peer.next_request()
            group.cancel_scope.cancel()
        request = doors.peer.requests[-1]
        await eventually(lambda: request.is_cancelled and not doors.house.state("operations"))
        assert doors.house.leases("project") == ()


@pytest.mark.spec("shutdown")
@pytest.mark.parametrize("tool", ["echo", "deploy"])
async def test_a_call_in_flight_at_shutdown_is_not_answered_as_if_it_could_be_repeated(tool: str) -> None:
    async with doors_house() as doors:
        await doors.act(LIST)
        answers: list[httpx2.Response] = []

        async def asking() -> None:
            answer = await doors.act(call(tool))
            if answer.status_code == 202:
                interrupt = answer.json()["interrupts"][0]["id"]
                answer = await doors.post(f"{W}/interactions/{interrupt}", ACCEPT)
            answers.append(answer)

        async with anyio.create_task_group() as group:
            group.start_soon(asking)
            await doors.peer.next_request()
            await doors.streams.end_all()
        late = await doors.act(LIST)
    told = answers[0].json()
    assert (answers[0].status_code, told["code"], told["by"]) == (409, "operation-cancelled", "shutdown")
    assert (told["stage"], told["outcome"], told["retryable"]) == ("operation", "unknown", False)
    assert (late.status_code, late.json()["code"]) == (503, "shutting-down")


async def test_a_watch_answers_the_state_after_its_seconds() -> None:
    async with doors_house() as doors:
        await doors.act(LIST)
        answer = await doors.act({"kind": "workspace.mcp.watch", "seconds": 0.01})
        state = doors.house.workspace.state.snapshot()
    assert (answer.status_code, answer.json()) == (200, {"status": 200, "state": state})
