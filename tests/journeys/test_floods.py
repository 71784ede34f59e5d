"""Peers that send far more than anybody asked for: it is bounded, told, and holds up nobody else. SPEC §limits."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.children import SCRIPTED_STDIO
from tests.support.daemon import Daemon
from tests.support.peers.programs import http_definition
from tests.support.scripted_http import (
    FRESH,
    REVISION,
    Reply,
    Script,
    response_event,
    result,
    scripted_http,
    stream,
)
from tests.support.subscriptions import ACKNOWLEDGED, TOOLS_FLAG, changed, notification, open_stream

pytestmark = [pytest.mark.timeout(120), pytest.mark.spec("limits", "connection", "prepare")]

Json = dict[str, Any]
MIB = 1 << 20
COUNT = 30_000
OTHERS = 3
"""How many calls of somebody else are answered at least while one flood is taken in: a few, each of milliseconds."""


def message(**members: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", **members}).replace('"$pt"', "$pt")


def progress(number: int) -> str:
    return message(method="notifications/progress", params={"progressToken": "$pt", "progress": number})


FLOODS: dict[str, list[str]] = {
    "what is no message": ["no JSON"] * COUNT,
    "progress": [progress(number) for number in range(COUNT)],
    "changes": [message(method="notifications/tools/list_changed")] * COUNT,
    "other notifications": [message(method="notifications/message", params={"data": "x" * 100})] * COUNT,
    "requests": [message(id=number, method="sampling/createMessage", params={}) for number in range(COUNT)],
}
"""Lines over stdio, events over HTTP, in front of the answer to a call."""
ANSWER = {**FRESH, "content": [{"type": "text", "text": "ok"}]}
STDIO_ONLY: dict[str, list[Json]] = {
    "answers to nobody": [{"raw": message(id=10**6, result={}) + "\n", "times": COUNT}],
    "standard error": [{"errfill": 32 * MIB, "ch": "#\r"}],
    "a line without an end": [{"raw": "x", "times": 20 * MIB}, {"raw": "\n"}],
}
HTTP_ONLY: dict[str, Reply] = {
    "comments": stream(": x\n\n" * COUNT * 10, response_event()),
    "fields": stream("id: 1\nretry: 1\n" * COUNT * 10, "\n", response_event()),
}


def nested(depth: int) -> Json:
    schema: Json = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def tools(count: int) -> list[Json]:
    return [{"name": f"t{number}", "inputSchema": {"type": "object"}} for number in range(count)]


ECHO: Json = {"name": "echo", "inputSchema": {"type": "object"}}


@asynccontextmanager
async def served(
    transport: str, directory: Path, listed: list[Json], call: Any = (), listen: Any = ()
) -> AsyncGenerator[Json]:
    """Have a server with these tools, and what it says to a call and a listen by its transport.

    Gives its definition; a child writes what it reads to ``log`` in the directory.
    """
    discovered = {
        **FRESH,
        "supportedVersions": [REVISION],
        "capabilities": {"tools": {"listChanged": bool(listen)}},
    }
    if transport == "http":
        answers: dict[str, Script] = {"tools/list": result({"tools": listed})}
        answers["server/discover"] = result(discovered)
        answers |= {"tools/call": call, "subscriptions/listen": listen}
        async with scripted_http(answers) as peer:
            yield http_definition("p", peer.url, read=["echo"] if ECHO in listed else [])
        return
    on = {
        "server/discover": [{"result": discovered}],
        "tools/list": [{"result": {**FRESH, "tools": listed}}],
        "tools/call": call,
        "subscriptions/listen": listen,
    }
    script = directory / "script.json"
    script.write_text(json.dumps({"on": on, "log": str(directory / "log")}))
    args = ["-I", "-S", str(SCRIPTED_STDIO), f"@{script}"]
    read = ["echo"] if ECHO in listed else []
    yield {"name": "p", "transport": "stdio", "command": sys.executable, "args": args, "read": read}


def flooded(transport: str, flood: str) -> Any:
    """Return how a call is answered that has this flood before its answer."""
    if transport == "stdio":
        before = STDIO_ONLY.get(flood) or [{"raw": "".join(f"{line}\n" for line in FLOODS[flood])}]
        return [*before, {"result": ANSWER}]
    if flood in HTTP_ONLY:
        return HTTP_ONLY[flood]
    return stream("".join(f"data: {line}\n\n" for line in FLOODS[flood]), response_event())


@asynccontextmanager
async def others_served(daemon: Daemon, url: str) -> AsyncGenerator[None]:
    """Require that somebody else's calls are answered inside the block."""
    if "q" not in await daemon.servers("others"):
        await daemon.attach("others", http_definition("q", url, read=["echo"]))
    answered = 0

    async def call() -> None:
        nonlocal answered
        while True:
            assert await daemon.call_text("others", "q", "echo", text="x") == "x"
            answered += 1

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        yield
        group.cancel_scope.cancel()
    assert answered >= OTHERS


def memory_peak(daemon: Daemon) -> int:
    """Return the most bytes that the daemon ever had resident."""
    status = Path(f"/proc/{daemon.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


CASES = [("stdio", flood) for flood in (*FLOODS, *STDIO_ONLY)] + [
    ("http", flood) for flood in (*FLOODS, *HTTP_ONLY)
]


@pytest.mark.parametrize("transport, flood", CASES)
async def test_a_flood_before_an_answer_costs_neither_the_answer_nor_anybody_else(
    daemon: Daemon, workspace: str, scripted_url: str, tmp_path: Path, transport: str, flood: str
) -> None:
    async with served(transport, tmp_path, [ECHO], flooded(transport, flood)) as definition:
        await daemon.attach(workspace, definition)
        before = memory_peak(daemon)
        async with others_served(daemon, scripted_url):
            assert await daemon.call_text(workspace, "p", "echo") == "ok"
        assert memory_peak(daemon) - before < 64 * MIB
        assert (await daemon.act(workspace, "workspace.mcp.detach", name="p"))["status"] == 200


@pytest.mark.spec("watch")
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_flood_of_changes_that_were_asked_for_costs_few_lists(
    daemon: Daemon, workspace: str, scripted_url: str, tmp_path: Path, transport: str
) -> None:
    lines = [
        notification(ACKNOWLEDGED, notifications=TOOLS_FLAG),
        *[notification("notifications/tools/list_changed")] * COUNT,
    ]
    listen: Any = [{"raw": "".join(json.dumps(line).replace('"$id"', "$id") + "\n" for line in lines)}]
    call: Any = [{"result": ANSWER}]
    if transport == "http":
        listen, call = open_stream(changed("tools") * COUNT), result(ANSWER)
    async with served(transport, tmp_path, [ECHO], call, listen) as definition:
        async with others_served(daemon, scripted_url):
            assert (await daemon.attach(workspace, definition))["live"]
            for _ in range(10):
                assert await daemon.call_text(workspace, "p", "echo") == "ok"
        await daemon.act(workspace, "workspace.mcp.detach", name="p")
    if transport == "stdio":
        assert (tmp_path / "log").read_text().count('"tools/list"') <= 3


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_ten_thousand_tools_are_taken_and_one_more_is_refused(
    daemon: Daemon, workspace: str, scripted_url: str, tmp_path: Path, transport: str
) -> None:
    for count in (10_000, 10_001):
        async with (
            served(transport, tmp_path, tools(count)) as definition,
            others_served(daemon, scripted_url),
        ):
            answer = await daemon.act(workspace, "workspace.mcp.attach", server=definition)
            if count == 10_000:
                assert len(answer["server"]["tools"]) == count
                await daemon.act(workspace, "workspace.mcp.detach", name="p")
            else:
                assert answer["code"] == "catalog-invalid"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_deep_schemas_cost_their_tools_alone(
    daemon: Daemon, workspace: str, tmp_path: Path, transport: str
) -> None:
    deep = [{"name": f"deep-{depth}", "inputSchema": nested(depth)} for depth in (20, 40, 90)]
    async with served(transport, tmp_path, [ECHO, *deep]) as definition:
        server = await daemon.attach(workspace, definition)
        withheld = [(each["name"], each["reason"]) for each in server["withheld"]]
        assert withheld == [("deep-40", "schema-too-deep"), ("deep-90", "schema-too-deep")]
        assert sorted(server["tools"]) == ["deep-20", "echo"]
        await daemon.act(workspace, "workspace.mcp.detach", name="p")
    # Beyond what a message may nest there is no list.
    async with served(
        transport, tmp_path, [ECHO, {"name": "deep", "inputSchema": nested(150)}]
    ) as definition:
        answer = await daemon.act(workspace, "workspace.mcp.attach", server=definition)
        assert answer["code"] == "catalog-invalid"


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("length", [5 * MIB, 16 * MIB + 1])
async def test_an_answer_beyond_the_limits_is_told_and_the_next_one_taken(
    daemon: Daemon, workspace: str, tmp_path: Path, transport: str, length: int
) -> None:
    large: Json = {**FRESH, "content": [{"type": "text", "text": "x" * length}]}
    calls: list[Json] | list[Reply] = [{"result": large, "nth": 1}, {"result": ANSWER, "nth": 2}]
    if transport == "http":
        calls = [result(large), result(ANSWER)]
    async with served(transport, tmp_path, [ECHO], calls) as definition:
        await daemon.attach(workspace, definition)
        call: Json = {"server": "p", "tool": "echo", "arguments": {}}
        refused = await daemon.act(workspace, "workspace.mcp.call", **call)
        assert (refused["code"], refused["outcome"]) == ("result-too-large", "executed")
        assert await daemon.call_text(workspace, "p", "echo") == "ok"
