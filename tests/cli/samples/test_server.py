"""What the sample servers answer, judged by the specification's schema. MCP 2026-07-28."""

from typing import Any

import pytest

from app.cli.samples import library, workshop
from app.cli.samples.server import META, REVISION, CancelledError, RequestError, SampleServer
from tests.support.mcp_schema import faults

SERVERS = [
    pytest.param(library.SERVER, id="library"),
    pytest.param(workshop.SERVER, id="workshop"),
]
METADATA = {f"{META}protocolVersion": REVISION, f"{META}clientCapabilities": {}}


def report_nothing(progress: float, total: float, message: str) -> None:
    """Nobody asked for progress."""


def ask(server: SampleServer, method: str, **params: Any) -> dict[str, Any]:
    return server.answer(method, {**params, "_meta": METADATA}, report_nothing)


@pytest.mark.spec("revision")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "method, definition",
    [
        ("server/discover", "DiscoverResult"),
        ("tools/list", "ListToolsResult"),
        ("resources/list", "ListResourcesResult"),
        ("resources/templates/list", "ListResourceTemplatesResult"),
        ("prompts/list", "ListPromptsResult"),
    ],
)
def test_every_list_and_the_discovery_satisfy_the_schema(
    server: SampleServer, method: str, definition: str
) -> None:
    assert faults(definition, ask(server, method)) == []


@pytest.mark.spec("revision")
@pytest.mark.parametrize(
    "server, method, params, definition",
    [
        (library.SERVER, "tools/call", {"name": "search", "arguments": {"words": "eliot"}}, "CallToolResult"),
        (library.SERVER, "tools/call", {"name": "search", "arguments": {"words": "zzz"}}, "CallToolResult"),
        (workshop.SERVER, "tools/call", {"name": "measure", "arguments": {"thing": "box"}}, "CallToolResult"),
        (library.SERVER, "resources/read", {"uri": "library://books/walden"}, "ReadResourceResult"),
        (workshop.SERVER, "resources/read", {"uri": "workshop://rules"}, "ReadResourceResult"),
        (workshop.SERVER, "prompts/get", {"name": "plan", "arguments": {"thing": "box"}}, "GetPromptResult"),
        (
            workshop.SERVER,
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "plan"}, "argument": {"name": "wood", "value": "b"}},
            "CompleteResult",
        ),
    ],
)
def test_every_answer_satisfies_the_schema(
    server: SampleServer, method: str, params: dict[str, Any], definition: str
) -> None:
    assert faults(definition, ask(server, method, **params)) == []


def test_a_completion_offers_what_begins_as_typed() -> None:
    completion = ask(
        workshop.SERVER,
        "completion/complete",
        ref={"type": "ref/prompt", "name": "plan"},
        argument={"name": "wood", "value": "b"},
    )["completion"]
    assert completion == {"values": ["beech", "birch"], "total": 2, "hasMore": False}


@pytest.mark.parametrize("words", ["zzz", ""])
def test_a_tool_that_says_no_answers_with_is_error(words: str) -> None:
    result = ask(library.SERVER, "tools/call", name="search", arguments={"words": words})
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "No book matches."}]


def test_a_structured_result_comes_with_its_text() -> None:
    result = ask(workshop.SERVER, "tools/call", name="measure", arguments={"thing": "shelf"})
    assert result["structuredContent"] == {"thing": "shelf", "square_metres": 1.2}
    assert result["content"] == [{"type": "text", "text": "thing: shelf, square_metres: 1.2"}]


@pytest.mark.spec("revision")
@pytest.mark.parametrize(
    "meta, code, http_status",
    [
        ({}, -32602, 400),
        ({f"{META}protocolVersion": REVISION}, -32602, 400),
        ({f"{META}protocolVersion": 1, f"{META}clientCapabilities": {}}, -32602, 400),
        ({f"{META}protocolVersion": "2025-11-25", f"{META}clientCapabilities": {}}, -32022, 400),
    ],
    ids=["nothing", "no capabilities", "no text", "another revision"],
)
def test_a_request_of_no_or_another_revision_is_refused(
    meta: dict[str, Any], code: int, http_status: int
) -> None:
    with pytest.raises(RequestError) as refused:
        library.SERVER.answer("tools/list", {"_meta": meta}, report_nothing)
    assert (refused.value.code, refused.value.http_status) == (code, http_status)
    if code == -32022:
        assert refused.value.document()["data"] == {"supported": [REVISION], "requested": "2025-11-25"}


@pytest.mark.parametrize(
    "method, params, code",
    [
        ("initialize", {}, -32601),
        ("tools/call", {"name": "nothing"}, -32602),
        ("resources/read", {"uri": "library://books/nothing"}, -32602),
        ("resources/read", {}, -32602),
        ("prompts/get", {"name": "nothing"}, -32602),
        ("prompts/get", {"name": "recommend"}, -32602),
    ],
)
def test_an_unknown_thing_is_an_error(method: str, params: dict[str, Any], code: int) -> None:
    with pytest.raises(RequestError) as refused:
        ask(library.SERVER, method, **params)
    assert refused.value.code == code


def test_a_tool_stops_where_its_report_says_that_nobody_waits() -> None:
    def gone(progress: float, total: float, message: str) -> None:
        raise CancelledError

    with pytest.raises(CancelledError):
        library.SERVER.answer("tools/call", {"name": "take_stock", "_meta": METADATA}, gone)
