"""The application around the routes: what no route answers is a Problem too."""

import pytest
from starlette.routing import Route

from app.doors.asgi import Receive, Scope, Send
from tests.support.doors_house import doors_house

pytestmark = pytest.mark.spec("security")


@pytest.mark.parametrize(
    "path", ["/nowhere", "/agui/", "/docs", "/redoc", "/v1", "/v1/workspaces/", "/v1/workspaces/w/actions/"]
)
async def test_a_path_that_no_route_has_is_a_blank_problem(path: str) -> None:
    async with doors_house() as doors:
        answer = await doors.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["type"], answer.json()["status"]) == ("about:blank", 404)


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("DELETE", "/v1/workspaces/w/servers", {"GET", "HEAD", "POST"}),
        ("POST", "/v1/workspaces/w/servers/p", {"PUT", "DELETE"}),
        ("POST", "/healthz", {"GET", "HEAD"}),
        ("OPTIONS", "/v1/workspaces", {"GET", "HEAD"}),
        ("TRACE", "/openapi.json", {"GET", "HEAD"}),
    ],
)
async def test_a_method_that_the_path_does_not_take_names_those_it_takes(
    method: str, path: str, allowed: set[str]
) -> None:
    async with doors_house() as doors:
        answer = await doors.post(path, method=method)
    assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, allowed)
    assert answer.json()["type"] == "about:blank"


async def test_nothing_is_behind_the_gate_but_with_a_token() -> None:
    async with doors_house() as doors:
        for path in ("/nowhere", "/openapi.json", "/v1/workspaces"):
            assert (await doors.get(path, token="wrong")).status_code == 401
        for path in ("/healthz", "/readyz"):
            assert (await doors.get(path, token="wrong")).status_code == 200


@pytest.mark.spec("problems")
async def test_a_bug_outside_every_border_is_internal() -> None:
    class Broken:
        async def __call__(self, _scope: Scope, _receive: Receive, _send: Send) -> None:
            raise RuntimeError("secret-canary")

    async with doors_house(routes=[Route("/broken", Broken())]) as doors:
        answer = await doors.get("/broken")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret-canary" not in answer.text


async def test_head_is_get_without_its_body() -> None:
    async with doors_house() as doors:
        answers = [await doors.post(path, method="HEAD") for path in ("/healthz", "/v1/workspaces/w/servers")]
    assert [(answer.status_code, answer.content) for answer in answers] == [(200, b""), (200, b"")]


async def test_a_path_that_is_asked_again_is_answered_as_it_was() -> None:
    requests = [
        ("DELETE", "/v1/workspaces/w/servers/first"),
        ("DELETE", "/v1/workspaces/w/servers/second"),
        ("GET", "/v1/workspaces/w/servers"),
        ("HEAD", "/v1/workspaces/w/servers"),
        ("DELETE", "/v1/workspaces/w/servers"),
        ("GET", "/nowhere"),
    ]
    async with doors_house() as doors:
        once, again = [[await doors.post(path, method=method) for method, path in requests] for _ in range(2)]
    assert [answer.status_code for answer in once] == [404, 404, 200, 200, 405, 404]
    assert [(answer.status_code, answer.content) for answer in again] == [
        (answer.status_code, answer.content) for answer in once
    ]
    assert ["'second'" in answer.text for answer in once[:2]] == [False, True]
