"""One action through one of the two doors, and that it has exactly one end. SPEC §agui, §calls."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.soak.model import Json
from tests.soak.world import World
from tests.support.daemon import events_of, run_input

TERMINAL = {"RUN_FINISHED", "RUN_ERROR"}


async def act(world: World, workspace: str, kind: str, **params: Any) -> Json:
    """Return the result, the Problem or the interrupts of an action, by a door that chance chooses.

    Raises:
        AssertionError: it had no end, or two.
    """
    world.counts["actions"] += 1
    if world.rng.random() < 0.3:
        return await _run(world, workspace, kind, params)
    return await world.daemon.act(workspace, f"workspace.mcp.{kind}", **params)


async def _run(world: World, workspace: str, kind: str, params: Json) -> Json:
    action = {"kind": f"workspace.mcp.{kind}", **params}
    async with run(world, workspace, action) as started:
        if isinstance(started, dict):
            return started
        events = [event async for event in started]
    types = [event["type"] for event in events]
    assert types[0] == "RUN_STARTED", types
    assert types[-1] in TERMINAL, types
    assert sum(each in TERMINAL for each in types) == 1, types
    outcome = events[-1].get("outcome", {})
    results = [event["value"] for event in events if event.get("name") == "plurnk.action.result"]
    if outcome.get("type") == "interrupt":
        assert results == []
        interrupts = outcome["interrupts"]
        return {"operation": interrupts[0]["metadata"]["plurnk"]["operation"], "interrupts": interrupts}
    assert len(results) == 1, (types, events[-1])
    return results[0]["result"] if results[0]["ok"] else results[0]["problem"]


@asynccontextmanager
async def run(world: World, workspace: str, action: Json) -> AsyncGenerator[AsyncIterator[Json] | Json]:
    """Give the events of one AG-UI run as they come, or the Problem of a daemon that goes down."""
    body = run_input(workspace, action)
    async with world.daemon.client() as client, client.stream("POST", "/", json=body) as response:
        if response.status_code == 503:
            yield json.loads(await response.aread())
            return
        assert response.status_code == 200, await response.aread()
        yield events_of(response)


async def answered(world: World, workspace: str, interrupt: str, **entry: Any) -> Json:
    """Return what one answer of a person comes to."""
    world.counts["answers"] += 1
    async with world.daemon.client() as client:
        path = f"/v1/workspaces/{workspace}/interactions/{interrupt}"
        return (await client.post(path, json=entry)).json()


async def settled(world: World, workspace: str, operation: str) -> Json:
    """Return how an operation ended, or where it stands."""
    async with world.daemon.client() as client:
        return (await client.get(f"/v1/workspaces/{workspace}/operations/{operation}")).json()
