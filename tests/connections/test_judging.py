"""judging.py: every enabled tool is judged as policy would, and others have their turn meanwhile."""

import anyio
import orjson
import pytest

from app.connections.connector import Connector
from app.connections.judging import LARGE, SMALL, Judge
from app.core.catalog import Entry
from app.core.definitions import parse_definition
from app.core.json_value import Json
from app.core.masking import Mask
from app.core.policy import judge
from app.ports import Target
from app.settings import Settings
from tests.support.scripted_http import result, scripted_http


def tool(name: str, **members: object) -> Entry:
    return Entry(name, orjson.dumps({"name": name, "inputSchema": {"type": "object"}, **members}))


HEADER: Json = {"type": "object", "properties": {"a": {"type": "array", "x-mcp-header": "A"}}}
TOOLS = [
    tool("good"),
    tool("foreign", inputSchema={"type": "object", "$schema": "https://example.com/x"}),
    tool("header", inputSchema=HEADER),
    tool("large", description="x" * LARGE),
]
LIMITS = {"max_schema_depth": 8, "max_schema_nodes": 100}


@pytest.mark.spec("prepare")
@pytest.mark.parametrize("is_http", [False, True])
async def test_tools_are_judged_as_policy_judges_them_wherever_that_is_done(is_http: bool) -> None:
    judged = await Judge(**LIMITS).judged(TOOLS, None, is_http=is_http)
    assert judged == {each.name: judge(each.raw, is_http=is_http, **LIMITS) for each in TOOLS}
    faults = [judgement.fault for judgement in judged.values()]
    assert faults == [None, "dialect-unsupported", "header-annotation-invalid" if is_http else None, None]


@pytest.mark.spec("prepare")
async def test_a_small_tool_is_judged_once_by_each_transport_and_a_larger_one_each_time() -> None:
    judge = Judge(**LIMITS)
    tools = [tool("x", description="x" * (SMALL - 70)), tool("y", description="x" * SMALL), tool("x")]
    assert [len(each.raw) <= SMALL for each in tools] == [True, False, True]
    first, again, over_stdio, other = [
        (await judge.judged([each], None, is_http=is_http))[each.name]
        for each, is_http in [(tools[0], True), (tools[0], True), (tools[0], False), (tools[2], True)]
    ]
    assert again is first
    assert over_stdio is not first
    assert other != first
    large = [(await judge.judged([tools[1]], None, is_http=True))["y"] for _ in range(2)]
    assert large[0] is not large[1]


@pytest.mark.spec("policy")
async def test_a_tool_that_is_not_enabled_is_not_judged() -> None:
    assert list(await Judge(**LIMITS).judged(TOOLS, ["good", "absent"], is_http=True)) == ["good"]
    assert await Judge(**LIMITS).judged(TOOLS, [], is_http=True) == {}


@pytest.mark.spec("limits")
@pytest.mark.parametrize(
    "tools",
    [
        [
            tool(
                f"t{number}", inputSchema={"type": "object", "not": {"pattern": rf"(?i)\w{{1,3000}}{number}"}}
            )
            for number in range(2000)
        ],
        [tool(f"t{number}", annotations={"x": [1.5] * 200_000}) for number in range(20)],
    ],
    ids=["compiling", "canonical"],
)
async def test_a_deadline_ends_the_judging_of_a_costly_catalog(tools: list[Entry]) -> None:
    with anyio.fail_after(10), anyio.move_on_after(0.2) as deadline:
        await Judge(max_schema_depth=64, max_schema_nodes=10_000).judged(tools, None, is_http=False)
    assert deadline.cancelled_caught


@pytest.mark.spec("prepare")
async def test_a_connection_has_exactly_its_enabled_tools_judged_by_the_settings() -> None:
    schema = {"type": "object", "properties": {"a": {"not": {"type": "string"}}}}
    tools = [{"name": name, "inputSchema": schema} for name in ("a", "b")]
    connector = Connector(Settings.model_validate({"PLURNK_MAX_SCHEMA_DEPTH": 3}), {}, Mask())
    try:
        async with scripted_http({"tools/list": result({"tools": tools})}) as peer:
            definition = parse_definition({"name": "p", "transport": "http", "url": peer.url, "tools": ["b"]})
            target = Target("w", definition, "workspace", is_explicit=True)
            async with anyio.create_task_group() as group:
                connection = await connector.open(target, group, lambda _: None)
                faults = {name: judgement.fault for name, judgement in connection.catalog.judged.items()}
                await connection.retire()
                assert faults == {"b": "schema-too-deep"}
    finally:
        await connector.close()
