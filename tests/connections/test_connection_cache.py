"""connection_cache.py: what a connection lists and what it need not, counted at scripted peers."""

from typing import Any

import pytest

from app.connections.connection_cache import Caches
from app.connections.connector import Connector
from app.connections.prepare import Listed
from app.core.answers import Result
from app.core.masking import Mask
from app.core.problem import Problem
from app.settings import Settings
from tests.support.caching_house import LISTS, PRIVATE, PUBLIC, STALE, answers, house, text_of, tool
from tests.support.scripted_http import Reply, Seen, error, result, scripted_http


@pytest.mark.spec("watch")
@pytest.mark.parametrize("workspace", ["other", "w"])
async def test_public_lists_cost_the_next_workspace_its_own_discovery_alone(workspace: str) -> None:
    async with scripted_http(answers(PUBLIC)) as peer, house() as home:
        first = await home.open(peer)
        assert sorted(peer.methods) == sorted([*LISTS, "server/discover"])
        second = await home.open(peer, workspace, name="q")
        assert peer.methods[5:] == ["server/discover"]
        assert second.catalog.tools == first.catalog.tools
        assert second.catalog.cache_control == first.catalog.cache_control


@pytest.mark.spec("watch")
@pytest.mark.spec("security")
async def test_private_lists_serve_their_own_server_of_their_own_workspace_alone() -> None:
    async with scripted_http(answers(PRIVATE)) as peer, house() as home:
        await home.open(peer)
        await home.open(peer)
        assert len(peer.of("tools/list")) == 1
        await home.open(peer, name="q")
        await home.open(peer, "other")
        assert [len(peer.of(method)) for method in LISTS] == [3, 3, 3, 3]
        assert len(peer.of("server/discover")) == 4


@pytest.mark.spec("watch")
@pytest.mark.parametrize(
    "control",
    [STALE, {"ttlMs": -1}, {"ttlMs": "60000"}, {"ttlMs": None}],
    ids=["zero", "negative", "text", "null"],
)
async def test_what_may_not_be_kept_is_asked_every_time(control: dict[str, Any]) -> None:
    given = {"cacheScope": "public", **control}
    async with scripted_http(answers(given)) as peer, house() as home:
        for workspace in ("a", "b", "a"):
            connection = await home.open(peer, workspace)
            await text_of(connection)
        assert [len(peer.of(method)) for method in [*LISTS, "resources/read"]] == [3] * 5


@pytest.mark.spec("watch")
@pytest.mark.parametrize("workspace", ["w", "other"])
async def test_an_explicit_change_lists_afresh_and_others_have_what_it_got(workspace: str) -> None:
    pages = [result({"tools": [tool(name)], **PUBLIC}) for name in ("old", "new")]
    async with scripted_http(answers(PUBLIC, **{"tools/list": pages})) as peer, house() as home:
        await text_of(await home.open(peer))
        connection = await home.open(peer, workspace, is_explicit=True)
        assert [len(peer.of(method)) for method in LISTS] == [2, 2, 2, 2]
        assert [entry.name for entry in connection.catalog.tools] == ["new"]
        await text_of(connection)
        assert len(peer.of("resources/read")) == 2
        await text_of(connection)
        assert [entry.name for entry in (await home.open(peer)).catalog.tools] == ["new"]
        assert [len(peer.of(method)) for method in [*LISTS, "resources/read"]] == [2] * 5


@pytest.mark.spec("watch")
async def test_once_it_is_ready_a_connection_that_was_asked_for_has_what_is_kept() -> None:
    async def drain() -> Listed:
        raise AssertionError

    async with scripted_http(answers(PUBLIC)) as peer, house() as home:
        connection = await home.open(peer, is_explicit=True)
        listed = await connection.cache.listed("tools/list", drain)
        assert listed.entries == connection.catalog.tools


@pytest.mark.spec("watch")
async def test_no_list_of_a_child_is_kept() -> None:
    drained: list[Listed] = []

    async def drain() -> Listed:
        drained.append(Listed(cache_control=(60_000, "public")))
        return drained[-1]

    caches = Caches()
    child = caches.of_child()
    for _ in range(2):
        assert await child.listed("tools/list", drain) is drained[-1]
    assert (len(drained), len(caches.lists)) == (2, 0)


@pytest.mark.spec("watch")
@pytest.mark.spec("security")
@pytest.mark.parametrize("control", [PUBLIC, PRIVATE], ids=["public", "private"])
async def test_another_token_header_or_url_never_shares(control: dict[str, Any]) -> None:
    def by_caller(seen: Seen) -> Reply:
        caller = seen.headers.get("authorization", seen.headers.get("x-key", seen.path))
        return result({"tools": [tool(caller.replace(" ", "-"))], **control})

    ways: list[dict[str, Any]] = [
        {"authorization": {"type": "bearer", "token": "${TA}"}},
        {"authorization": {"type": "bearer", "token": "${TB}"}},
        {"headers": {"X-Key": "${TA}"}},
        {"headers": {"X-Key": "${TB}"}},
        {},
    ]
    scripts = answers(control, **{"tools/list": by_caller})
    async with scripted_http(scripts) as peer, house({"TA": "secret-a", "TB": "secret-b"}) as home:
        definitions = [{"name": "p", "transport": "http", "url": peer.url, **way} for way in ways]
        definitions.append({"name": "p", "transport": "http", "url": f"{peer.url}/x"})
        for _ in range(2):
            found = [(await home.open_any(each)).catalog.tools[0].name for each in definitions]
            assert found == ["Bearer-secret-a", "Bearer-secret-b", "secret-a", "secret-b", "/mcp", "/mcp/x"]
        assert len(peer.of("tools/list")) == len(definitions)


@pytest.mark.spec("watch")
async def test_the_same_value_by_another_reference_or_in_another_case_shares() -> None:
    async with scripted_http(answers(PUBLIC)) as peer, house({"A": "same", "B": "same"}) as home:
        await home.open(peer, "a", headers={"X-Key": "${A}", "X-B": "1"})
        await home.open(peer, "b", headers={"x-b": "1", "x-key": "${B}"})
        assert len(peer.of("tools/list")) == 1


@pytest.mark.spec("references")
async def test_no_expanded_value_is_in_a_key() -> None:
    async with scripted_http(answers(PRIVATE)) as peer, house({"T": "canary-value"}) as home:
        await text_of(await home.open(peer, headers={"X-Key": "${T}"}))
        held = repr((vars(home.caches), vars(home.caches.lists), vars(home.caches.reads)))
        assert len(home.caches.lists) == 4
        assert len(home.caches.reads) == 1
        assert "canary" not in held


@pytest.mark.spec("watch")
async def test_an_entry_expires_by_the_clock() -> None:
    short = answers(
        PUBLIC, **{"prompts/list": result({"prompts": [], "ttlMs": 1000, "cacheScope": "public"})}
    )
    async with scripted_http(short) as peer, house() as home:
        await home.open(peer, "a")
        home.hand.now = 0.999
        await home.open(peer, "b")
        assert [len(peer.of(method)) for method in LISTS] == [1, 1, 1, 1]
        home.hand.now = 1.0
        await home.open(peer, "c")
        assert [len(peer.of(method)) for method in LISTS] == [2, 1, 1, 1]


@pytest.mark.spec("watch")
@pytest.mark.parametrize("stale_page", [0, 1, 2])
async def test_a_list_is_drained_from_its_beginning_once_any_page_is_stale(stale_page: int) -> None:
    drains = 0

    def paged(seen: Seen) -> Reply:
        nonlocal drains
        page = int(seen.params.get("cursor", "0").rpartition(".")[2])
        drains += page == 0
        control = {**PUBLIC, "ttlMs": 1000 if page == stale_page else 60_000}
        more = {} if page == 2 else {"nextCursor": f"{drains}.{page + 1}"}
        return result({"tools": [tool(f"t{drains}-{page}")], **control, **more})

    async with scripted_http(answers(PUBLIC, **{"tools/list": paged})) as peer, house() as home:
        await home.open(peer, "a")
        home.hand.now = 0.9
        again = await home.open(peer, "b")
        assert [entry.name for entry in again.catalog.tools] == ["t1-0", "t1-1", "t1-2"]
        home.hand.now = 1.1
        later = await home.open(peer, "c")
        assert [entry.name for entry in later.catalog.tools] == ["t2-0", "t2-1", "t2-2"]
        assert [seen.params.get("cursor") for seen in peer.of("tools/list")][3:] == [None, "2.1", "2.2"]


@pytest.mark.spec("watch")
@pytest.mark.spec("security")
async def test_one_private_page_makes_the_list_private() -> None:
    pages = [
        result({"tools": [tool("a")], **PUBLIC, "nextCursor": "1"}),
        result({"tools": [tool("b")], **PRIVATE}),
    ]

    def paged(seen: Seen) -> Reply:
        return pages[1 if "cursor" in seen.params else 0]

    async with scripted_http(answers(PUBLIC, **{"tools/list": paged})) as peer, house() as home:
        await home.open(peer, "a")
        await home.open(peer, "a")
        assert len(peer.of("tools/list")) == 2
        await home.open(peer, "b")
        assert len(peer.of("tools/list")) == 4


@pytest.mark.spec("limits")
async def test_a_list_that_somebody_else_drained_counts_against_the_limits() -> None:
    both = answers(
        PUBLIC,
        **{
            "tools/list": result({"tools": [tool("a"), tool("b")], **PUBLIC}),
            "prompts/list": [
                result({"prompts": [{"name": n} for n in names], **STALE}) for names in ("", "abc")
            ],
        },
    )
    async with scripted_http(both) as peer, house() as home:
        home.connector = Connector(
            Settings.model_validate({"max_catalog_entries": 4}), {}, Mask(), caches=home.caches
        )
        await home.open(peer, "a")
        with pytest.raises(Problem) as raised:
            await home.open(peer, "b")
        assert raised.value.facts["reason"] == "entries-too-many"
        assert len(peer.of("tools/list")) == 1


@pytest.mark.spec("watch")
async def test_a_failing_list_is_never_kept() -> None:
    failing = [error(-32603), result({"tools": [tool("a")], **PUBLIC})]
    async with scripted_http(answers(PUBLIC, **{"tools/list": failing})) as peer, house() as home:
        with pytest.raises(Problem):
            await home.open(peer, "a")
        assert [entry.name for entry in (await home.open(peer, "b")).catalog.tools] == ["a"]


@pytest.mark.spec("watch", "observe")
async def test_a_change_of_the_lists_is_asked_for_again_by_the_next_to_come() -> None:
    async with scripted_http(answers(PUBLIC)) as peer, house() as home:
        connection = await home.open(peer, "a")
        connection.cache.invalidate("resources")
        await home.open(peer, "b")
        assert [len(peer.of(method)) for method in LISTS] == [1, 2, 2, 1]
        assert home.caches.lookups.values == {("lists", "miss"): 6, ("lists", "hit"): 2}
        connection.cache.invalidate("tools")
        connection.cache.invalidate("no-such-capability")
        await home.open(peer, "c")
        assert [len(peer.of(method)) for method in LISTS] == [1, 2, 2, 2]


@pytest.mark.spec("watch")
async def test_headers_that_do_not_match_are_settled_by_a_list_from_the_server_itself() -> None:
    def listed(header: str) -> Reply:
        schema = {"type": "object", "properties": {"area": {"type": "string", "x-mcp-header": header}}}
        return result({"tools": [{"name": "t", "inputSchema": schema}], **PUBLIC})

    def called(seen: Seen) -> Reply:
        return result({"content": []}) if "mcp-param-new" in seen.headers else error(-32020, status=400)

    scripts = answers(PUBLIC, **{"tools/list": [listed("Old"), listed("New")], "tools/call": called})
    async with scripted_http(scripts) as peer, house() as home:
        connection = await home.open(peer)
        schema = b'{"type":"object","properties":{"area":{"type":"string","x-mcp-header":"Old"}}}'
        params: Any = {"name": "t", "arguments": {"area": "x"}}
        assert isinstance(await connection.request("tools/call", params, input_schema=schema), Result)
        assert len(peer.of("tools/list")) == 2
        await home.open(peer, "other")
        assert len(peer.of("tools/list")) == 3
