"""prepare.py: some lists drained again into a catalog that is there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from yarl import URL

from app.connections.classify import Peer
from app.connections.http_pool import HttpPool
from app.connections.judging import Judge
from app.connections.prepare import CatalogLimits, Preparation
from app.connections.streamable_http import StreamableHttpTransport
from app.core.problems import CatalogInvalid
from app.settings import Settings
from tests.support.scripted_http import ECHO, Script, ScriptedHttp, result, scripted_http

pytestmark = pytest.mark.spec("watch")


@asynccontextmanager
async def preparation(
    answers: dict[str, Script], limits: CatalogLimits
) -> AsyncGenerator[tuple[Preparation, ScriptedHttp]]:
    pool = HttpPool(Settings())
    try:
        async with scripted_http(answers) as peer:
            transport = StreamableHttpTransport(pool, URL(peer.url), {}, message_max=100_000)
            with anyio.fail_after(20):
                judge = Judge(max_schema_depth=8, max_schema_nodes=100)
                enabled = ["echo", "new", "bad"]
                yield Preparation(transport, Peer("p", "http"), limits, judge=judge, enabled=enabled), peer
    finally:
        await pool.close()


async def test_only_the_lists_that_are_named_are_listed_again_and_the_rest_is_kept() -> None:
    answers: dict[str, Script] = {
        "tools/list": [
            result({"tools": [ECHO, {"name": 7}], "ttlMs": 5, "cacheScope": "public"}),
            result({"tools": [{**ECHO, "name": "new"}, 8], "ttlMs": 6}),
        ],
        "prompts/list": result({"prompts": [{"name": "greet"}, {"name": 9}], "ttlMs": 7}),
    }
    async with preparation(answers, CatalogLimits(100, 100_000)) as (run, peer):
        first = await run.run()
        second = await run.list_all(first, frozenset({"tools", "completions"}))
        counts = [len(peer.of(each)) for each in ("server/discover", "tools/list", "prompts/list")]
        assert counts == [1, 2, 1]
        assert [each.name for each in second.tools] == ["new"]
        assert second.prompts == first.prompts
        assert [(each.method, each.reason) for each in second.withheld] == [
            ("tools/list", "not-an-object"),
            ("prompts/list", "name-invalid"),
        ]
        assert second.cache_control == {**first.cache_control, "tools/list": (6, "private")}
        assert await run.list_all(second, frozenset()) == second


@pytest.mark.spec("limits")
async def test_what_is_kept_counts_against_the_limits_of_a_refresh() -> None:
    answers: dict[str, Script] = {
        "tools/list": [
            result({"tools": [ECHO]}),
            result({"tools": [{**ECHO, "name": "a"}, {**ECHO, "name": "b"}]}),
        ],
        "prompts/list": result({"prompts": [{"name": "greet"}]}),
    }
    async with preparation(answers, CatalogLimits(2, 100_000)) as (run, _):
        first = await run.run()
        with pytest.raises(CatalogInvalid):
            await run.list_all(first, frozenset({"tools"}))


@pytest.mark.spec("prepare", "policy")
async def test_the_new_tools_are_judged_too_and_those_that_are_kept_stay_judged() -> None:
    foreign = {"type": "object", "$schema": "https://example.com/x"}
    answers: dict[str, Script] = {
        "tools/list": [
            result({"tools": [ECHO, {**ECHO, "name": "other"}]}),
            result({"tools": [{**ECHO, "name": "new"}, {"name": "bad", "inputSchema": foreign}]}),
        ]
    }
    async with preparation(answers, CatalogLimits(100, 100_000)) as (run, _):
        first = await run.run()
        assert list(first.judged) == ["echo"]
        kept = await run.list_all(first, frozenset({"prompts"}))
        assert kept.judged == first.judged
        second = await run.list_all(kept, frozenset({"tools"}))
        assert {name: each.fault for name, each in second.judged.items()} == {
            "new": None,
            "bad": "dialect-unsupported",
        }
