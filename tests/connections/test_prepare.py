"""prepare.py: discovery and the drained lists, over real HTTP from scripted and from real servers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from anyio import to_thread
from yarl import URL

from app.connections.classify import Peer
from app.connections.http_pool import HttpPool
from app.connections.prepare import PAGES_MAX, CatalogLimits, Preparation
from app.connections.streamable_http import StreamableHttpTransport
from app.core.catalog import ServerCatalog
from app.core.problem import Problem
from app.settings import Settings
from tests.support.mcp_schema import faults
from tests.support.peers.programs import FASTMCP_SERVER, SDK_SERVER, http_peer
from tests.support.scripted_http import (
    REVISION,
    Reply,
    Script,
    ScriptedHttp,
    Seen,
    error,
    json_reply,
    result,
    scripted_http,
    stream,
)


def discover(capabilities: Any = None, **members: Any) -> Reply:
    return result({"supportedVersions": [REVISION], "capabilities": capabilities or {"tools": {}}, **members})


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **members}


@asynccontextmanager
async def preparation(
    url: str, limits: CatalogLimits | None = None, message_max: int = 100_000
) -> AsyncGenerator[tuple[Preparation, StreamableHttpTransport]]:
    pool = HttpPool(Settings())
    transport = StreamableHttpTransport(pool, URL(url), {}, message_max=message_max)
    try:
        with anyio.fail_after(20):
            yield Preparation(transport, Peer("p", "http"), limits or CatalogLimits(100, 100_000)), transport
    finally:
        await pool.close()


async def prepared(
    answers: dict[str, Script], limits: CatalogLimits | None = None
) -> tuple[ServerCatalog, ScriptedHttp]:
    async with scripted_http(answers) as peer, preparation(peer.url, limits) as (run, _):
        return await run.run(), peer


async def refused(answers: dict[str, Script], limits: CatalogLimits | None = None) -> Problem:
    with pytest.raises(Problem) as raised:
        await prepared(answers, limits)
    return raised.value


def names(catalog: ServerCatalog) -> list[str]:
    return [entry.name for entry in catalog.tools]


@pytest.mark.spec("prepare")
@pytest.mark.parametrize("program", [SDK_SERVER, FASTMCP_SERVER], ids=["sdk", "fastmcp"])
async def test_a_real_server_is_discovered_and_its_lists_are_kept_to_the_letter(program: Path) -> None:
    with http_peer(program) as url:
        async with preparation(url) as (run, transport):
            catalog = await run.run()
            answer: Any = await transport.request("tools/list", {})
            raw = answer.value["tools"]
    assert catalog.protocol_version == REVISION
    assert catalog.server_info is not None
    assert catalog.server_info["name"] in {"sdk-peer", "fastmcp-peer"}
    assert catalog.instructions == "Tools for journeys."
    assert {"echo", "add", "count", "hold"} <= set(names(catalog))
    assert [orjson.loads(entry.raw) for entry in catalog.tools] == raw
    assert [entry.name for entry in catalog.resources] == ["memo://welcome"]
    assert [entry.name for entry in catalog.resource_templates] == ["memo://people/{name}"]
    assert [entry.name for entry in catalog.prompts] == ["greet"]
    assert catalog.withheld == ()


@pytest.mark.spec("revision")
async def test_every_preparation_discovers_first_and_every_request_is_valid() -> None:
    _, peer = await prepared({"server/discover": discover({"tools": {}, "resources": {}, "prompts": {}})})
    assert peer.methods[0] == "server/discover"
    assert sorted(peer.methods[1:]) == [
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "tools/list",
    ]
    definitions = {
        "server/discover": "DiscoverRequest",
        "tools/list": "ListToolsRequest",
        "prompts/list": "ListPromptsRequest",
        "resources/list": "ListResourcesRequest",
        "resources/templates/list": "ListResourceTemplatesRequest",
    }
    for seen in peer.seen:
        assert faults(definitions[seen.method], seen.message) == []


@pytest.mark.spec("revision")
@pytest.mark.parametrize(
    "supported, calls, code", [([REVISION], 2, None), (["2025-11-25"], 1, "x"), ([], 1, "x")]
)
async def test_a_server_that_names_our_revision_is_asked_exactly_once_more(
    supported: list[str], calls: int, code: str | None
) -> None:
    refusal = error(-32022, status=400, data={"supported": supported, "requested": REVISION})
    async with (
        scripted_http({"server/discover": [refusal, discover()]}) as peer,
        preparation(peer.url) as (run, _),
    ):
        if code is None:
            assert names(await run.run()) == ["echo"]
        else:
            with pytest.raises(Problem) as raised:
                await run.run()
            assert raised.value.code == "protocol-revision-unsupported"
        assert len(peer.of("server/discover")) == calls


@pytest.mark.spec("revision")
async def test_a_server_that_says_so_twice_is_refused() -> None:
    refusal = error(-32022, status=400, data={"supported": [REVISION]})
    problem = await refused({"server/discover": refusal})
    assert problem.code == "protocol-revision-unsupported"


@pytest.mark.spec("prepare")
async def test_only_negotiated_lists_are_asked_for() -> None:
    catalog, peer = await prepared(
        {"server/discover": discover({"tools": {}, "prompts": None, "logging": {}})}
    )
    assert peer.methods == ["server/discover", "tools/list"]
    assert catalog.prompts == ()
    bare, peer = await prepared({"server/discover": discover({"completions": {}})})
    assert peer.methods == ["server/discover"]
    assert bare.capabilities == {"completions": {}}


@pytest.mark.spec("prepare")
async def test_lists_are_drained_in_parallel() -> None:
    started: set[str] = set()
    all_started = anyio.Event()

    def held(value: dict[str, Any]) -> Script:
        def script(seen: Seen) -> Reply:
            started.add(seen.method)
            if len(started) == 4:
                all_started.set()
            body = {"jsonrpc": "2.0", "id": seen.message["id"], "result": value}
            return stream(": wait\n\n", all_started, b"data: " + orjson.dumps(body) + b"\n\n")

        return script

    catalog, _ = await prepared(
        {
            "server/discover": discover({"tools": {}, "resources": {}, "prompts": {}}),
            "tools/list": held({"tools": [tool("a")]}),
            "resources/list": held({"resources": []}),
            "resources/templates/list": held({}),
            "prompts/list": held({"prompts": []}),
        }
    )
    assert names(catalog) == ["a"]


@pytest.mark.spec("prepare")
async def test_the_empty_cursor_is_a_cursor_and_null_ends_the_list() -> None:
    pages = [
        result({"tools": [tool("first")], "nextCursor": ""}),
        result({"tools": [tool("second")], "nextCursor": "x/ŽŽ=="}),
        result({"tools": [tool("third")], "nextCursor": None}),
    ]
    catalog, peer = await prepared({"tools/list": pages})
    assert names(catalog) == ["first", "second", "third"]
    sent = [
        {name: value for name, value in seen.params.items() if name != "_meta"}
        for seen in peer.of("tools/list")
    ]
    assert sent == [{}, {"cursor": ""}, {"cursor": "x/ŽŽ=="}]


@pytest.mark.spec("prepare")
async def test_a_cursor_that_comes_again_ends_the_preparation() -> None:
    async with (
        scripted_http({"tools/list": result({"tools": [tool("a")], "nextCursor": "8"})}) as peer,
        preparation(peer.url) as (run, _),
    ):
        with pytest.raises(Problem) as raised:
            await run.run()
        assert len(peer.of("tools/list")) == 2
    assert (raised.value.code, raised.value.facts["reason"]) == ("catalog-invalid", "cursor-repeated")
    assert "cursor" in raised.value.detail


@pytest.mark.spec("prepare")
@pytest.mark.spec("limits")
async def test_a_list_without_an_end_is_left_after_the_most_pages() -> None:
    def counting(seen: Seen) -> Reply:
        return result({"prompts": [], "nextCursor": str(int(seen.params.get("cursor", "0")) + 1)})

    async with (
        scripted_http({"server/discover": discover({"prompts": {}}), "prompts/list": counting}) as peer,
        preparation(peer.url, CatalogLimits(10, 10**9)) as (run, _),
    ):
        with pytest.raises(Problem) as raised:
            await run.run()
        assert len(peer.of("prompts/list")) == PAGES_MAX
    assert raised.value.facts["reason"] == "pages-too-many"
    assert "cursor" in raised.value.detail


@pytest.mark.spec("limits")
@pytest.mark.parametrize(
    "limits, reason",
    [(CatalogLimits(2, 10**6), "entries-too-many"), (CatalogLimits(100, 100), "catalog-too-large")],
)
async def test_more_than_the_limits_is_refused_across_pages(limits: CatalogLimits, reason: str) -> None:
    pages = [result({"tools": [tool("a"), tool("b")], "nextCursor": "1"}), result({"tools": [tool("c")]})]
    problem = await refused({"tools/list": pages}, limits)
    assert (problem.code, problem.facts["reason"]) == ("catalog-invalid", reason)


@pytest.mark.spec("prepare")
async def test_a_malformed_entry_costs_that_entry_wherever_it_stands() -> None:
    pages = [
        result({"tools": [tool("a"), {"name": "b"}], "nextCursor": "1"}),
        result({"tools": [tool("c"), 7]}),
    ]
    catalog, _ = await prepared({"tools/list": pages})
    assert names(catalog) == ["a", "c"]
    assert [entry.name for entry in catalog.withheld] == ["b", "#3"]


@pytest.mark.spec("prepare")
@pytest.mark.parametrize(
    "reply, code, reason",
    [
        (result({}), "catalog-invalid", "list-missing"),
        (result({"tools": {}}), "catalog-invalid", "list-missing"),
        (result({"tools": [], "nextCursor": 5}), "catalog-invalid", "cursor-malformed"),
        (result({"tools": [], "resultType": "input_required"}), "catalog-invalid", "result-type"),
        (error(-32601, status=404), "catalog-invalid", "list-missing"),
        (error(-32603), "catalog-invalid", "list-refused"),
        (Reply(headers={"Content-Type": "text/html"}), "catalog-invalid", "answer-malformed"),
        (result({"tools": [tool("x" * 100_000)]}), "catalog-invalid", "message-too-large"),
        (Reply(401), "authorization-refused", None),
        (Reply(503), "server-unavailable", None),
        (Reply(raw=[], then="reset"), "server-unavailable", None),
    ],
)
async def test_a_list_that_cannot_be_used(reply: Reply, code: str, reason: str | None) -> None:
    problem = await refused({"tools/list": reply})
    assert (problem.code, problem.facts.get("reason")) == (code, reason)


@pytest.mark.spec("prepare")
@pytest.mark.parametrize(
    "reply", [result({}), result({"resourceTemplates": None}), error(-32601, status=404)]
)
async def test_templates_alone_may_be_missing(reply: Reply) -> None:
    catalog, _ = await prepared(
        {"server/discover": discover({"resources": {}}), "resources/templates/list": reply}
    )
    assert catalog.resource_templates == ()
    problem = await refused({"server/discover": discover({"resources": {}}), "resources/list": result({})})
    assert problem.facts["reason"] == "list-missing"


@pytest.mark.spec("prepare")
@pytest.mark.parametrize(
    "meta, identity",
    [
        (
            {"name": "n", "version": "1", "title": "T", "icons": []},
            {"name": "n", "version": "1", "title": "T"},
        ),
        ({"name": "n", "version": "1"}, {"name": "n", "version": "1"}),
        ({"name": "n", "version": 1}, None),
        ({"name": "n"}, None),
        ({"name": "n", "version": "1", "title": 5}, None),
        ({"name": "n" * 2000, "version": "1"}, None),
        ("n", None),
        (None, None),
    ],
)
async def test_the_server_is_who_it_says_or_nobody(meta: object, identity: object) -> None:
    catalog, _ = await prepared(
        {"server/discover": discover(_meta={"io.modelcontextprotocol/serverInfo": meta}, instructions=5)}
    )
    assert catalog.server_info == identity
    assert catalog.instructions is None


@pytest.mark.spec("watch")
async def test_how_long_a_list_may_be_kept_is_the_shortest_of_its_pages() -> None:
    pages = [
        result({"tools": [], "ttlMs": 5000, "cacheScope": "public", "nextCursor": "1"}),
        result({"tools": [], "ttlMs": 300, "cacheScope": "public"}),
    ]
    answers: dict[str, Script] = {
        "server/discover": discover({"tools": {}, "prompts": {}, "resources": {}}),
        "tools/list": pages,
        "prompts/list": result({"prompts": [], "ttlMs": -1, "cacheScope": "all"}),
        "resources/list": result({"resources": [], "ttlMs": True}),
        "resources/templates/list": error(-32601),
    }
    catalog, _ = await prepared(answers)
    assert catalog.cache_control == {
        "tools/list": (300, "public"),
        "prompts/list": (0, "private"),
        "resources/list": (0, "private"),
    }


@pytest.mark.spec("prepare")
async def test_the_first_failing_list_ends_the_others() -> None:
    never = anyio.Event()
    problem = await refused(
        {
            "server/discover": discover({"tools": {}, "prompts": {}}),
            "tools/list": stream(": wait\n\n", never),
            "prompts/list": error(-32603),
        }
    )
    assert problem.code == "catalog-invalid"


@pytest.mark.spec("revision")
async def test_an_error_envelope_without_an_id_is_classified_too() -> None:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "id absent"}}
    problem = await refused({"server/discover": json_reply(body)})
    assert problem.code == "protocol-revision-unsupported"
    assert problem.facts["requiredRevision"] == REVISION


async def test_a_page_of_megabytes_is_read_while_others_have_their_turn() -> None:
    tools = [tool(f"t{number}", description="x" * 200) for number in range(10_000)]
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += to_thread.current_default_thread_limiter().borrowed_tokens
            await anyio.sleep(0.001)

    answers: dict[str, Script] = {
        "server/discover": discover(),
        "tools/list": result({"tools": tools}),
    }
    limits, names = CatalogLimits(len(tools), 10_000_000), list[str]()
    async with (
        scripted_http(answers) as peer,
        preparation(peer.url, limits, 10_000_000) as (run, _),
        anyio.create_task_group() as group,
    ):
        group.start_soon(take_turns)
        names += [entry.name for entry in (await run.run()).tools]
        group.cancel_scope.cancel()
    assert names == [each["name"] for each in tools]
    assert turns > 0
