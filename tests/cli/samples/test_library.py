"""The sample server over HTTP, as the official SDK's client sees it."""

import subprocess
import sys
from collections.abc import Generator
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp_types import PromptReference, TextContent

from app.cli.samples.server import META, REVISION
from tests.support.mcp_schema import faults


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    command = [sys.executable, "-m", "app.cli.samples.library"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


@pytest.mark.spec("revision")
async def test_the_official_client_uses_all_of_it(url: str) -> None:
    reports: list[tuple[float, float | None, str | None]] = []

    async def observe(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with Client(url, mode=REVISION) as client:
        tools = await client.list_tools()
        stock = await client.call_tool("take_stock", {}, progress_callback=observe)
        found = await client.call_tool("search", {"words": "flatland"})
        book = await client.read_resource("library://books/dracula")
        prompt = await client.get_prompt("recommend", {"book": "Walden"})
        reference = PromptReference(type="ref/prompt", name="recommend")
        completion = await client.complete(reference, {"name": "book", "value": "w"})
    assert [tool.name for tool in tools.tools] == ["search", "take_stock"]
    assert stock.structured_content == {"books": 4, "shelves": 6}
    assert reports == [(float(shelf), 6.0, f"shelf {shelf}") for shelf in range(1, 7)]
    assert found.content == [TextContent(type="text", text="Edwin A. Abbott: Flatland (1884)")]
    assert [getattr(part, "text", None) for part in book.contents] == ["Bram Stoker: Dracula (1897)"]
    assert "Walden" in getattr(prompt.messages[0].content, "text", "")
    assert completion.completion.values == ["walden"]


def post(url: str, body: dict[str, Any], **headers: str) -> httpx2.Response:
    standard = {"MCP-Protocol-Version": REVISION, "Mcp-Method": body.get("method", "")}
    with httpx2.Client(trust_env=False) as client:
        return client.post(url, json=body, headers={**standard, **headers})


def request(method: str, **params: Any) -> dict[str, Any]:
    meta = {f"{META}protocolVersion": REVISION, f"{META}clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": meta}}


@pytest.mark.parametrize(
    "body, headers, status, code",
    [
        (request("tools/list"), {"Mcp-Method": "tools/call"}, 400, -32020),
        (request("tools/list"), {"MCP-Protocol-Version": "2025-11-25"}, 400, -32020),
        (request("tools/call", name="search"), {}, 400, -32020),
        (request("nothing/here"), {}, 404, -32601),
        (request("tools/list"), {"Origin": "http://evil.example"}, 403, -32600),
    ],
    ids=["method", "version", "name", "unknown method", "origin"],
)
@pytest.mark.spec("revision")
def test_a_request_that_contradicts_its_headers_is_refused(
    url: str, body: dict[str, Any], headers: dict[str, str], status: int, code: int
) -> None:
    answer = post(url, body, **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert faults("JSONRPCErrorResponse", answer.json()) == []


def test_a_name_may_come_in_the_base64_sentinel(url: str) -> None:
    body = request("resources/read", uri="library://catalogue")
    answer = post(url, body, **{"Mcp-Name": "=?base64?bGlicmFyeTovL2NhdGFsb2d1ZQ==?="})
    assert answer.status_code == 200
    assert faults("ReadResourceResultResponse", answer.json()) == []


def test_a_notification_is_taken_without_a_body(url: str) -> None:
    answer = post(url, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_neither_a_get_stream_nor_a_session(url: str, method: str) -> None:
    with httpx2.Client(trust_env=False) as client:
        assert client.request(method, url).status_code == 405


@pytest.mark.parametrize("body", [b"", b"{", b"[1]"], ids=["empty", "cut", "a batch"])
def test_a_body_that_is_no_message_is_refused(url: str, body: bytes) -> None:
    with httpx2.Client(trust_env=False) as client:
        assert client.post(url, content=body).status_code == 400
