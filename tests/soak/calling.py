"""What clients of a soak call, leave, are asked, answer, and never answer. SPEC §calls."""

from collections.abc import Sequence
from typing import Any

import anyio

from tests.soak.changing import perform
from tests.soak.doors import act, answered, run, settled
from tests.soak.model import CALL_MAY_END, Change, Json, Question, Workspace
from tests.soak.peers import LIBRARIES
from tests.soak.world import GONE, World
from tests.support.browser import callback_of

TOOLS = ("echo", "echo", "write", "write", "slow", "ask", "ask", "work", "grow")
ENDED = {
    "operation-not-found",
    "interrupt-not-found",
    "interrupt-expired",
    "operation-cancelled",
    "operation-timeout",
}


async def call(world: World, workspace: Workspace) -> None:
    """One call of any tool, with its answers where it asks."""
    server = world.rng.choice(sorted(workspace.effective) or ["shared"])
    tools = (*TOOLS, *["die"] * (world.rng.random() < 0.1))
    await _call(world, workspace, server, _tool(world, server, tools))


async def calls_and_a_change(world: World, workspace: Workspace) -> None:
    """Calls of a server, and meanwhile a change of it: old or new, nothing between."""
    server = world.rng.choice(sorted(workspace.effective) or ["shared"])
    async with anyio.create_task_group() as group:
        for _ in range(world.rng.randint(2, 4)):
            group.start_soon(_call, world, workspace, server, "echo")
        await anyio.sleep(world.rng.random() * 0.02)
        if server != "guarded":
            kind = world.rng.choice(("replace", "reconnect", "detach"))
            sent = world.peers.definition(server, world.rng) if kind == "replace" else None
            await perform(world, workspace, Change(kind, server, sent))


async def leave(world: World, workspace: Workspace) -> None:
    """A client begins a call, or a watch, and vanishes at one of its events."""
    server = world.rng.choice(sorted(workspace.effective) or ["shared"])
    tool, text = _tool(world, server, ("slow", "work", "ask", "write")), world.text()
    members: Json = {"server": server, "tool": tool, "arguments": {"text": text}}
    action = {"kind": "workspace.mcp.call", **members}
    if world.rng.random() < 0.3:
        action = {"kind": "workspace.mcp.watch", "seconds": 5}
    events_left, asked = world.rng.randint(1, 8), list[Any]()
    if server != "guarded" and "server" in action:
        world.said[text] = "unknown"
    async with run(world, workspace.name, action) as events:
        if isinstance(events, dict):
            return
        async for event in events:
            asked = event.get("outcome", {}).get("interrupts", [])
            events_left -= 1
            if events_left == 0:
                break
    world.counts["left"] += 1
    if asked:
        _keep(workspace, asked, text)


async def settle(world: World, workspace: Workspace) -> None:
    """Something that was asked long ago is answered or cancelled."""
    if not workspace.questions:
        return
    question = workspace.questions.pop(world.rng.randrange(len(workspace.questions)))
    if world.rng.random() < 0.5:
        await _answer(world, workspace, question)
        return
    done = await act(world, workspace.name, "cancel", operation=question.operation)
    assert done.get("cancelled") or done["code"] in {*ENDED, "shutting-down"}, done


def _tool(world: World, server: str, tools: Sequence[str]) -> str:
    """Return one of the tools that the server may have."""
    if server == "guarded":
        return "echo"
    return world.rng.choice(("echo", "ask") if server in LIBRARIES else tools)


async def _call(world: World, workspace: Workspace, server: str, tool: str) -> None:
    text = world.text()
    is_noted = server != "guarded"
    if is_noted:
        world.said[text] = "unknown"
    try:
        answer = await act(world, workspace.name, "call", server=server, tool=tool, arguments={"text": text})
        if "interrupts" in answer:
            question = Question(answer["operation"], tuple(answer["interrupts"]), text)
            if world.rng.random() < 0.15:
                workspace.questions.append(question)
                return
            answer = await _answer(world, workspace, question)
        if answer.get("status") == 200 and world.rng.random() < 0.2:
            repeated = await settled(world, workspace.name, answer["operation"])
            assert repeated == answer or repeated.get("code") == "shutting-down", (repeated, answer)
    except GONE:
        world.counts["call gone"] += 1
        return
    _judge(world, workspace, text, answer, is_noted=is_noted)


def _judge(world: World, workspace: Workspace, text: str, answer: Json, *, is_noted: bool) -> None:
    """Note how the call ended; one that nobody heard the end of is ``unknown``."""
    if answer.get("status") == 200:
        world.counts["call ok"] += 1
        end = "rejected" if "rejected" in answer else "ok"
        assert end == "rejected" or answer["content"][0]["text"] == text, answer
    else:
        code, end = answer["code"], answer.get("outcome", "unknown")
        world.counts[f"call {code}"] += 1
        effective = workspace.effective
        allowed = CALL_MAY_END | ENDED | {"server-changed", "server-not-found", "tool-not-found"}
        assert code in allowed, (workspace, effective, answer)
    if is_noted:
        world.said[text] = end


async def _answer(world: World, workspace: Workspace, question: Question) -> Json:
    """A person answers, each question in its own way, sometimes with nonsense first; return what it comes to."""
    last: Json = {}
    for interrupt in question.interrupts:
        if interrupt["reason"] == "plurnk:authorization":
            url = interrupt["metadata"]["plurnk"]["url"]
            entry: Json = {"status": "resolved", "payload": {"callbackUrl": await callback_of(url)}}
        elif interrupt["reason"] == "tool_call":
            decision = world.rng.choice(("accept", "accept", "reject"))
            entry = {"status": "resolved", "payload": {"decision": decision}}
        else:
            entry = {"status": "resolved", "payload": {"sure": True}}
        if world.rng.random() < 0.1:
            await answered(world, workspace.name, interrupt["id"], status="resolved", payload={"none": 1})
        if world.rng.random() < 0.1:
            entry = {"status": "cancelled"}
        last = await answered(world, workspace.name, interrupt["id"], **entry)
    return last


def _keep(workspace: Workspace, interrupts: list[Any], text: str) -> None:
    operation = interrupts[0]["metadata"]["plurnk"]["operation"]
    workspace.questions.append(Question(operation, tuple(interrupts), text))
