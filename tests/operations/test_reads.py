"""Reads, prompts and completions: what reaches the peer, what comes back, and what needs no peer at all."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.core.addresses import resource_address
from app.core.answers import Answer, AnswerLost, HttpRefusal, Progress, RemoteError, RequestFault, Result
from app.core.catalog import Entry
from app.core.events import OperationProgressed
from app.core.json_value import JsonObject
from app.core.operation_problems import (
    OperationCancelled,
    OperationTimeout,
    PromptNotFound,
    RemoteErrorAnswered,
    ResourceNotFound,
    ToolCallFailed,
    ToolResultInvalid,
)
from app.core.problem import Outcome, Problem
from app.core.problems import ParameterInvalid, ServerNotConnected, ServerNotFound, ServerUnavailable
from app.operations.board import Settled
from app.operations.reads import complete, read
from tests.support.board_house import NOTHING, left, outcome_of
from tests.support.gated_connection import GatedConnection, catalog, tool_entry
from tests.support.operations_house import OperationsHouse, operations_house

NOTE = {"uri": "kb://z/n#1", "name": "n", "x-own": [1.0]}
TEMPLATE = {"uriTemplate": "kb://{x}", "name": "t"}
PROMPT = {"name": "review", "arguments": [{"name": "code"}]}
TEXT: Any = {"uri": "kb://z/n#1", "text": "hi"}
MESSAGE: Any = {"role": "user", "content": {"type": "text", "text": "hi"}}
ASKED: JsonObject = {
    "ref": {"type": "ref/prompt", "name": "review"},
    "argument": {"name": "code", "value": "p"},
    "context": {"arguments": {"language": "python"}},
}


def entry(name: str, value: Any) -> Entry:
    return Entry(name, orjson.dumps(value))


FULL = catalog(
    [tool_entry("get")],
    resources=[entry("kb://z/n#1", NOTE)],
    templates=[entry("kb://{x}", TEMPLATE)],
    prompts=[entry("review", PROMPT)],
)
BARE = catalog(capabilities={"tools": {}})


def peers(**settings_: str) -> AbstractAsyncContextManager[OperationsHouse]:
    return operations_house({"p": FULL, "bare": BARE}, environment=settings_)


def peer_of(house: OperationsHouse, server: str = "p") -> GatedConnection:
    return next(each for each in house.connector.opened if each.server == server)


async def got(house: OperationsHouse, uri: str) -> Any:
    ended = await read(house.board, uri, observe=house.events.append)
    assert isinstance(ended, Settled)
    return ended.result


@pytest.mark.spec("addresses")
@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("p:///", {"resources": [NOTE], "resourceTemplates": [TEMPLATE]}),
        ("p:///resources", {"resources": [NOTE], "resourceTemplates": [TEMPLATE]}),
        ("p:///prompts", {"prompts": [PROMPT]}),
        ("bare:///resources", {"resources": [], "resourceTemplates": []}),
        ("bare:///prompts", {"prompts": []}),
    ],
)
async def test_indexes_come_from_the_snapshot_as_the_server_sent_them(uri: str, shown: Any) -> None:
    async with peers() as house:
        assert await got(house, uri) == shown
        assert [each.requests for each in house.connector.opened] == [[], []]
        assert left(house) == NOTHING


@pytest.mark.spec("addresses")
async def test_a_document_is_one_text_at_its_own_address() -> None:
    async with peers() as house:
        (contents,) = (await got(house, "worker://plurnk/docs/p.md"))["contents"]
        assert (contents["uri"], contents["mimeType"]) == ("worker://plurnk/docs/p.md", "text/markdown")
        assert "get" in contents["text"]
        assert peer_of(house).requests == []


URIS = ["kb://z/notes/n%237%20%26k%3D1%2Bq%3F.txt", "https://e.example/a?b=c#d", "file:///é +%", "x:y"]


@pytest.mark.spec("addresses")
@pytest.mark.parametrize("uri", URIS)
async def test_a_resource_is_read_by_its_exact_uri_listed_or_not(uri: str) -> None:
    async with peers() as house:
        peer_of(house).automatic = lambda request: request.result({"contents": [TEXT], "ttlMs": 0})
        assert await got(house, resource_address("p", uri)) == {"contents": [TEXT]}
        (request,) = peer_of(house).requests
        assert (request.method, request.params) == ("resources/read", {"uri": uri})
        assert request.input_schema is None
        assert left(house) == NOTHING


@pytest.mark.spec("addresses")
@settings(max_examples=40, deadline=None)
@given(uri=st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_any_uri_reaches_the_peer_as_it_was(uri: str) -> None:
    async def main() -> None:
        async with peers() as house:
            peer_of(house).automatic = lambda request: request.result({"contents": []})
            await got(house, resource_address("p", uri))
            assert peer_of(house).requests[0].params == {"uri": uri}

    anyio.run(main)


@pytest.mark.spec("addresses")
@pytest.mark.parametrize(
    ("uri", "params"),
    [
        ("p:///prompts/review", {"name": "review"}),
        ("p:///prompts/a%2Fb?x=1%202&y=a+b", {"name": "a/b", "arguments": {"x": "1 2", "y": "a+b"}}),
    ],
)
async def test_a_prompt_is_got_with_its_arguments(uri: str, params: Any) -> None:
    async with peers() as house:
        peer_of(house).automatic = lambda request: request.result({"description": "d", "messages": [MESSAGE]})
        assert await got(house, uri) == {"description": "d", "messages": [MESSAGE]}
        (request,) = peer_of(house).requests
        assert (request.method, request.params) == ("prompts/get", params)


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("q:///resources", ServerNotFound),
        ("q:///resources/x%3Ay", ServerNotFound),
        ("worker://plurnk/docs/q.md", ServerNotFound),
        ("bare:///resources/x%3Ay", ResourceNotFound),
        ("bare:///prompts/review", PromptNotFound),
        ("p:///prompts/review?x=1&x=2", ParameterInvalid),
        ("p:///nowhere", ParameterInvalid),
        ("http://example.com/", ParameterInvalid),
        ("file:///etc/passwd", ParameterInvalid),
        ("", ParameterInvalid),
    ],
)
async def test_what_cannot_be_read_is_refused_before_anything_is_sent(
    uri: str, problem: type[Problem]
) -> None:
    async with peers() as house:
        with pytest.raises(problem) as raised:
            await got(house, uri)
        assert raised.value.outcome is Outcome.NOT_SENT
        assert [each.requests for each in house.connector.opened] == [[], []]
        assert left(house) == NOTHING


@pytest.mark.spec("problems")
@pytest.mark.parametrize(
    ("answer", "problem", "outcome"),
    [
        (RemoteError(-32002, "gone"), ResourceNotFound, Outcome.REJECTED),
        (RemoteError(-32602, "no such resource"), RemoteErrorAnswered, Outcome.REJECTED),
        (HttpRefusal(500), RemoteErrorAnswered, Outcome.REJECTED),
        (Result({"contents": None}, 9), ToolResultInvalid, Outcome.EXECUTED),
        (AnswerLost("gone"), ToolCallFailed, Outcome.UNKNOWN),
    ],
)
async def test_each_answer_to_a_read_is_told_apart(
    answer: Answer | RequestFault, problem: type[Problem], outcome: Outcome
) -> None:
    async with peers() as house:
        peer_of(house).automatic = lambda _: answer
        with pytest.raises(problem) as raised:
            await got(house, "p:///resources/x%3Ay")
        assert raised.value.outcome is outcome
        assert left(house) == NOTHING


@pytest.mark.spec("problems")
async def test_the_code_of_an_unknown_resource_means_nothing_for_a_prompt() -> None:
    async with peers() as house:
        peer_of(house).automatic = lambda _: RemoteError(-32002, "gone")
        with pytest.raises(RemoteErrorAnswered):
            await got(house, "p:///prompts/review")


@pytest.mark.spec("hydration")
async def test_a_recovering_server_shows_its_lists_and_sends_nothing() -> None:
    async with peers() as house:
        connection = peer_of(house)
        connection.lose(ServerUnavailable("p", "stdio", "it ended"))
        assert house.connector.on_change is not None
        house.connector.on_change(connection)
        assert (await got(house, "p:///prompts")) == {"prompts": [PROMPT]}
        with pytest.raises(ServerNotConnected):
            await got(house, "p:///prompts/review")
        with pytest.raises(ServerNotConnected):
            await complete(house.board, "p", ASKED, observe=house.events.append)


@pytest.mark.spec("calls")
async def test_a_read_is_an_operation_with_a_lease_that_can_be_cancelled() -> None:
    async with peers() as house, anyio.create_task_group() as group:
        ended: list[Any] = []

        async def reader() -> None:
            ended.append(await outcome_of(lambda: got(house, "p:///resources/x%3Ay")))

        group.start_soon(reader)
        request = await peer_of(house).next_request()
        (operation,) = house.leases()
        assert house.state("operations") == {operation: {"server": "p", "state": "working"}}
        house.board.cancel(operation)
        await anyio.wait_all_tasks_blocked()
        assert request.is_cancelled
        assert isinstance(ended[0], OperationCancelled)
        assert left(house) == NOTHING


@pytest.mark.spec("calls")
@pytest.mark.parametrize("uri", ["p:///resources/x%3Ay", "p:///prompts/review"])
async def test_the_progress_of_a_read_is_told_and_shown(uri: str) -> None:
    async with peers() as house, anyio.create_task_group() as group:
        group.start_soon(outcome_of, lambda: got(house, uri))
        request = await peer_of(house).next_request()
        (operation,) = house.leases()
        assert request.on_progress is not None
        request.on_progress(Progress(1, 2, "half"))
        assert house.events == [OperationProgressed(operation, None, Progress(1, 2, "half"))]
        shown = {"progress": 1, "total": 2, "message": "half"}
        assert house.state("operations")[operation]["progress"] == shown
        house.board.cancel(operation)


@pytest.mark.spec("calls")
async def test_a_read_has_the_deadline_of_every_operation() -> None:
    async with peers(PLURNK_MCP_REQUEST_TIMEOUT="50") as house:
        with pytest.raises(OperationTimeout):
            await got(house, "p:///prompts/review")
        assert peer_of(house).requests[0].is_cancelled
        assert left(house) == NOTHING


@pytest.mark.spec("actions")
async def test_a_completion_is_asked_and_shown() -> None:
    async with peers() as house:
        peer_of(house).automatic = lambda request: request.result(
            {"completion": {"values": ["py"], "total": 1}}
        )
        ended = await complete(house.board, "p", ASKED, observe=house.events.append)
        assert isinstance(ended, Settled)
        assert ended.result == {"completion": {"values": ["py"], "total": 1}}
        (request,) = peer_of(house).requests
        assert (request.method, request.params) == ("completion/complete", ASKED)
        assert request.on_progress is None


@pytest.mark.spec("actions")
async def test_a_server_that_completes_nothing_is_not_asked() -> None:
    async with peers() as house:
        with pytest.raises(ParameterInvalid) as raised:
            await complete(house.board, "bare", ASKED, observe=house.events.append)
        assert raised.value.facts == {"field": "server"}
        assert peer_of(house, "bare").requests == []
