"""What the holder of one workspace's token tries on another: its ids, and every spelling of its name."""

from typing import Any

import orjson
import pytest

from tests.support.agui_events import parse_stream
from tests.support.doors_house import TOKEN, DoorsHouse, call, doors_house, run_input

pytestmark = pytest.mark.spec("security")


async def _refused(doors: DoorsHouse, method: str, path: str, body: Any = None) -> tuple[int, str]:
    """Return status and code of what the token of workspace ``a`` is answered."""
    answer = await doors.post(path, body, method=method, token=doors.tokens.for_workspace("a"))
    return answer.status_code, answer.json().get("code", answer.json()["type"])


async def test_ids_of_another_workspace_are_no_ids() -> None:
    async with doors_house() as doors:
        waiting = (await doors.act(call("deploy", svc="x"), workspace="b")).json()
        operation, interrupt = waiting["operation"], waiting["interrupts"][0]["id"]
        answer = {"status": "resolved", "payload": {"decision": "accept"}}
        cancel = {"kind": "workspace.mcp.cancel", "operation": operation}
        assert await _refused(doors, "GET", f"/v1/workspaces/a/operations/{operation}") == (
            404,
            "operation-not-found",
        )
        assert await _refused(doors, "POST", "/v1/workspaces/a/actions", cancel) == (
            404,
            "operation-not-found",
        )
        guessed = f"/v1/workspaces/a/interactions/{interrupt}"
        assert await _refused(doors, "POST", guessed, answer) == (404, "interrupt-not-found")
        resume = run_input(workspace="a", resume=[{"interruptId": interrupt, **answer}])
        async with doors.client(doors.tokens.for_workspace("a")) as client:
            events = parse_stream((await client.post("/", json=resume)).content)
        assert events[-1]["result"]["problem"]["code"] == "interrupt-not-found"
        resume["forwardedProps"]["plurnk"]["workspace"] = "b"
        assert await _refused(doors, "POST", "/", resume) == (403, "workspace-refused")
        for path in ("/v1/audit", "/v1/audit?workspace=a", "/metrics", "/v1/workspaces"):
            assert await _refused(doors, "GET", path) == (403, "workspace-refused")
        still = (await doors.get(f"/v1/workspaces/b/operations/{operation}")).json()
        assert [each["id"] for each in still["interrupts"]] == [interrupt]
        assert doors.peer.requests == []


SPELLINGS = {
    "b": (403, "workspace-refused"),
    "%62": (403, "workspace-refused"),
    "B": (403, "workspace-refused"),
    "..": (400, "workspace-invalid"),
    ".b": (400, "workspace-invalid"),
    "b%20": (400, "workspace-invalid"),
    "b%0a": (400, "workspace-invalid"),
    "b%0d%0aX-Evil:1": (400, "workspace-invalid"),
    "%2562": (400, "workspace-invalid"),
    "a;b": (400, "workspace-invalid"),
    "a,b": (400, "workspace-invalid"),
    "a%3Fb": (400, "workspace-invalid"),
    "a%23b": (400, "workspace-invalid"),
    "%EF%BD%82": (400, "workspace-invalid"),
    "a%CC%80": (400, "workspace-invalid"),
    "a%E2%80%8B": (400, "workspace-invalid"),
    "%FF": (400, "workspace-invalid"),
    "b" * 129: (400, "workspace-invalid"),
    "a%2F..%2Fb": (404, "about:blank"),
    "a%5C..%5Cb": (404, "about:blank"),
    "b%00": (404, "about:blank"),
    "a/../b": (404, "about:blank"),
    "/b": (404, "about:blank"),
    "": (404, "about:blank"),
}


async def test_no_spelling_of_another_workspaces_name_leads_into_it() -> None:
    async with doors_house() as doors:
        token = doors.tokens.for_workspace("a")
        seen: dict[str, tuple[int, str]] = {}
        for spelling in SPELLINGS:
            request = (
                f"GET /v1/workspaces/{spelling}/servers HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: Bearer {token}\r\nConnection: close\r\n\r\n"
            )
            head, _, body = (await doors.loopback.raw(request.encode())).partition(b"\r\n\r\n")
            assert b"x-evil" not in head.lower()
            problem = orjson.loads(body)
            seen[spelling] = (problem["status"], problem.get("code", problem["type"]))
        assert seen == SPELLINGS
        names = ["b", ["a"], {"a": 1}, 1, True, "a\0", "\uff41", " a", "a/../b", "../b", "b" * 129]
        for name in names:
            status, code = await _refused(
                doors, "POST", "/", run_input({"kind": "workspace.mcp.list"}, workspace=name)
            )
            assert (status, code) in {(403, "workspace-refused"), (400, "workspace-invalid")}, name
        assert (await doors.get("/v1/workspaces")).json() == {"workspaces": ["w"]}  # the house's own


_HEAD = "Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
_SECOND = f"GET /v1/workspaces/smuggled/servers HTTP/1.1\r\n{_HEAD}\r\n"
_CHUNKED = "Transfer-Encoding: chunked\r\n"
SMUGGLED = {
    "a length beside chunks": f"{_HEAD}Content-Length: 5\r\n{_CHUNKED}\r\n0\r\n\r\n",
    "chunks beside a length": f"{_HEAD}{_CHUNKED}Content-Length: 5\r\n\r\n0\r\n\r\n",
    "two lengths": f"{_HEAD}Content-Length: 0\r\nContent-Length: 9\r\n\r\n",
    "a list of lengths": f"{_HEAD}Content-Length: 0, 0\r\n\r\n",
    "a signed length": f"{_HEAD}Content-Length: +0\r\n\r\n",
    "another coding": f"{_HEAD}Transfer-Encoding: xchunked\r\n\r\n",
    "chunks that are not last": f"{_HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a blank before the colon": f"{_HEAD}Content-Length : 9\r\n\r\n",
    "a folded line": f"{_HEAD}X: y\r\n Content-Length: 3\r\n\r\n",
    "a bare line feed": f"{_HEAD}X: y\nContent-Length: 3\r\n\r\n",
    "a bare carriage return": f"{_HEAD}X: y\rContent-Length: 3\r\n\r\n",
    "a NUL": f"{_HEAD}X: y\0\r\n\r\n",
    "an extension with a line feed": f"{_HEAD}{_CHUNKED}\r\n0;a\nb\r\n\r\n",
}


@pytest.mark.parametrize("request_rest", SMUGGLED.values(), ids=SMUGGLED.keys())
async def test_a_request_that_a_proxy_could_read_otherwise_ends_the_connection(request_rest: str) -> None:
    async with doors_house() as doors:
        raw = f"POST /v1/workspaces/first/actions HTTP/1.1\r\n{request_rest}{_SECOND}"
        answered = await doors.loopback.raw(raw.replace("{token}", TOKEN).encode("latin-1"))
        assert answered.count(b"HTTP/1.1 ") == 1
        assert answered.startswith(b"HTTP/1.1 400 ")
        assert (await doors.get("/v1/workspaces")).json() == {"workspaces": ["w"]}
