"""Uses everything a real peer offers, through the daemon, and checks each answer. SPEC §actions, §calls."""

from typing import Any
from urllib.parse import quote

from tests.support.daemon import Daemon

REVISION = "2026-07-28"
COMMON_TOOLS = {"echo", "add", "count", "hold", "fail", "variable", "header"}


def check_summary(summary: dict[str, Any], *, name: str, transport: str, identity: dict[str, str]) -> None:
    """The summary of a connected server has every member of the contract and no other."""
    assert {key: summary[key] for key in ("name", "source", "transport", "state", "protocolVersion")} == {
        "name": name,
        "source": "workspace",
        "transport": transport,
        "state": "connected",
        "protocolVersion": REVISION,
    }
    assert summary["server"] == identity
    assert summary["instructions"] == "Tools for journeys."
    assert set(summary["tools"]) >= COMMON_TOOLS
    assert (summary["resources"], summary["resourceTemplates"], summary["prompts"]) == (1, 1, 1)
    assert summary["withheld"] == []
    assert len(summary["revision"]) == 64
    assert isinstance(summary["live"], bool)
    members = {"name", "source", "transport", "state", "enabledTools", "read", "withheld", "protocolVersion"}
    members |= {
        "server",
        "capabilities",
        "instructions",
        "tools",
        "resources",
        "resourceTemplates",
        "prompts",
    }
    assert set(summary) == members | {"revision", "live"}


async def use_everything(daemon: Daemon, workspace: str, server: str) -> None:
    """Every kind of request reaches the peer and its answer comes back; echo, add, count, fail must read."""
    await _call_tools(daemon, workspace, server)
    await _read_addresses(daemon, workspace, server)
    await _complete(daemon, workspace, server)


async def _call_tools(daemon: Daemon, workspace: str, server: str) -> None:
    assert await daemon.call_text(workspace, server, "echo", text="grüße\u2028\x00") == "grüße\u2028\x00"
    kind = "workspace.mcp.call"
    added = await daemon.act(workspace, kind, server=server, tool="add", arguments={"a": 2, "b": 3})
    assert added["structuredContent"] == {"total": 5}
    failed = await daemon.act(workspace, kind, server=server, tool="fail", arguments={"message": "no"})
    assert (failed["status"], failed["isError"]) == (200, True)
    invalid = await daemon.post(workspace, kind, server=server, tool="add", arguments={"a": "two"})
    assert (invalid.status_code, invalid.json()["code"]) == (400, "arguments-invalid")
    assert invalid.json()["outcome"] == "not-sent"
    absent = await daemon.post(workspace, kind, server=server, tool="nothing", arguments={})
    assert (absent.status_code, absent.json()["code"]) == (404, "tool-not-found")
    events = await daemon.run_action(workspace, kind, server=server, tool="count", arguments={"steps": 3})
    reported = [event for event in events if event["type"].startswith("ACTIVITY_")]
    assert [event["type"] for event in reported] == ["ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "ACTIVITY_DELTA"]
    assert reported[0]["content"] | {"toolCallId": ""} == {
        "toolCallId": "",
        "progress": 1,
        "total": 3,
        "message": "step 1",
    }
    assert events[-1]["result"]["result"]["content"][0]["text"] == "counted to 3"


async def _read_addresses(daemon: Daemon, workspace: str, server: str) -> None:
    kind = "workspace.mcp.read"
    index = await daemon.act(workspace, kind, uri=f"{server}:///")
    assert [resource["uri"] for resource in index["resources"]] == ["memo://welcome"]
    assert [template["uriTemplate"] for template in index["resourceTemplates"]] == ["memo://people/{name}"]
    for uri, text in (("memo://welcome", "welcome"), ("memo://people/ada", "memo about ada")):
        read = await daemon.act(workspace, kind, uri=f"{server}:///resources/{quote(uri, safe='')}")
        assert [content["text"] for content in read["contents"]] == [text]
    prompts = await daemon.act(workspace, kind, uri=f"{server}:///prompts")
    assert [prompt["name"] for prompt in prompts["prompts"]] == ["greet"]
    prompt = await daemon.act(workspace, kind, uri=f"{server}:///prompts/greet?name=a%2Bb&tone=dry")
    assert prompt["messages"][0]["content"]["text"] == "Write a dry greeting for a+b."
    document = await daemon.act(workspace, kind, uri=f"worker://plurnk/docs/{server}.md")
    text = document["contents"][0]["text"]
    assert all(tool in text for tool in COMMON_TOOLS)


async def _complete(daemon: Daemon, workspace: str, server: str) -> None:
    answer = await daemon.act(
        workspace,
        "workspace.mcp.complete",
        server=server,
        ref={"type": "ref/prompt", "name": "greet"},
        argument={"name": "name", "value": "a"},
    )
    assert answer["completion"]["values"] == ["ada", "alan"]
