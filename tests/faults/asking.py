"""The steps of the cases that run actions over AG-UI and answer what the runs ask. SPEC §agui, §calls."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.faults.world import Json, Record, World, now_ms
from tests.support.daemon import run_input

ANSWERS_MAX = 40
"""More answers than any bound of rounds: a daemon that has none is left there."""

_ACTIONS: dict[str, Json] = {
    "calls p.echo": {"kind": "workspace.mcp.call", "server": "p", "tool": "echo", "arguments": {}},
    "something else": {"kind": "workspace.mcp.list"},
}


async def run_action(world: World, record: Record, workspace: str, action: Json) -> None:
    """Do one action as an AG-UI run and keep its events and its end."""
    await _streamed(world, record, run_input(world.workspace(workspace), action))


async def _streamed(world: World, record: Record, body: Json) -> None:
    began = now_ms()
    async with world.daemon.run(body) as events:
        async for event in events:
            record.events.append(event)
            if event["type"] == "TOOL_CALL_END":
                record.operation.set()
    record.milliseconds += now_ms() - began
    result: Json = record.events[-1].get("result") or {"ok": False, "problem": {}}
    record.ok = result["ok"]
    record.body = result["result"] if record.ok else result["problem"]
    record.status = record.body.get("status", 0)
    record.is_settled = True


async def ran(world: World, step: Json) -> None:
    """Do one run on the thread that all runs share."""
    await run_action(world, world.begin("run"), "w1", _ACTIONS[step["run"]])


async def asked(world: World, step: Json) -> None:
    """Do any action as a run."""
    workspace, action = step["ask"]
    await run_action(world, world.begin("run"), workspace, action)


async def read(world: World, step: Json) -> None:
    """Read what an address names."""
    workspace, uri = step["read"]
    await run_action(world, world.begin("read"), workspace, {"kind": "workspace.mcp.read", "uri": uri})


async def completed(world: World, step: Json) -> None:
    """Ask for the completion of an argument."""
    workspace, server, ref = step["complete"]
    asked: Json = {"server": server, "ref": ref, "argument": {"name": "a", "value": "b"}}
    await run_action(world, world.begin("complete"), workspace, {"kind": "workspace.mcp.complete", **asked})


async def answered(world: World, step: Json) -> None:
    """Fill in the forms that the last step asked; it goes on as the same step."""
    assert await resumed(world, world.last, payload=step["answer"]), "nothing was asked"


async def answered_always(world: World, step: Json) -> None:
    """Agree to whatever the last step asks, for as long as it asks."""
    assert step["answer_always"] == "accept"
    for _ in range(ANSWERS_MAX):
        if not await resumed(world, world.last):
            break


async def resumed(world: World, record: Record, **answer: Any) -> bool:
    """Answer everything that is open at the record's end; return whether anything was."""
    asked = record.interrupts
    if not asked:
        return False
    entries = [{"interruptId": each["id"], "status": "resolved", **answer} for each in asked]
    await _streamed(world, record, run_input(world.workspace("w1"), None, resume=entries))
    return True


async def interrupts_listed(world: World, _step: Json) -> None:
    """Ask for nothing on the thread that all runs share: what waits on it is told again."""
    await _streamed(world, world.begin("interrupts"), run_input(world.workspace("w1"), None))


ASKS: dict[str, Callable[[World, Json], Awaitable[None]]] = {
    "run": ran,
    "ask": asked,
    "complete": completed,
    "answer": answered,
    "answer_always": answered_always,
    "list_interrupts": interrupts_listed,
}
