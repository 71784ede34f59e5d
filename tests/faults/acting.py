"""The steps of the cases, done to the real daemon through its HTTP door. SPEC §actions, §agui."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx2

from tests.faults.asking import ASKS, read, run_action
from tests.faults.cases import filled
from tests.faults.http_peer import Listening
from tests.faults.signing_in import REDIRECT, consent, note_url, peer_now, sign_in
from tests.faults.starting import STARTS, cycled, disarm
from tests.faults.varying import VARIES
from tests.faults.world import Json, Record, World, now_ms
from tests.support.scripted_http import ECHO, HANG, result, stream

ATTACHING = {"call", "call_each", "read", "read_each", "describe", "run", "parallel_n", "repeat"}
_NAMED = {"detach", "reconnect"}


async def act_all(world: World) -> None:
    """Do every step; on return each call that was not waited for has settled."""
    steps = world.case["steps"]
    if not any("attach" in step or "start_with" in step for step in steps) and _server_used(steps):
        await _begin(world)
    for step in steps:
        if world.facts.get("startup") == "fails":
            break
        await act(world, step)
    with anyio.move_on_after(30):
        while not all(record.is_settled for record in world.records):
            await anyio.sleep(0.01)


async def act(world: World, step: Json) -> None:
    """Do one step."""
    name = next(name for name in step if name in STEPS)
    await STEPS[name](world, filled(step, world.words))


def _server_used(steps: list[Json]) -> bool:
    return any(name in ATTACHING for step in steps for name in step) and "attach_detach" not in str(steps)


async def _begin(world: World) -> None:
    """Attach the server that the steps call."""
    if world.oauth:
        await sign_in(world, management, _implied(world))
    else:
        await attach(world, {"attach": "w1", "server": _implied(world)})


def _implied(world: World) -> Json:
    if world.oauth:
        way = {"type": "oauth", "redirectUrl": REDIRECT, "clientId": "cid", "clientSecret": "${CS}"}
        return {"name": "p", "transport": "http", "url": world.http.url, "authorization": way}
    if world.case["peer"]["t"] == "http":
        return {"name": "p", "transport": "http", "url": world.http.url}
    return {"name": "p", "transport": "stdio", "command": world.words["FAKE"]}


async def management(
    world: World, kind: str, workspace: str, *, label: str = "", record: Record | None = None, **params: Any
) -> Record:
    """Do one action over REST and keep its answer; ``record`` is where, else a new one."""
    record = record or world.begin(kind, label)
    began = now_ms()
    response = await world.daemon.post(world.workspace(workspace), f"workspace.mcp.{kind}", **params)
    record.milliseconds = now_ms() - began
    disarm(world)
    keep(record, response)
    return record


def keep(record: Record, response: httpx2.Response) -> None:
    """Fill a record from an answer."""
    record.status = response.status_code
    record.headers = dict(response.headers)
    record.ok = response.status_code < 300
    try:
        record.body = response.json()
    except ValueError:
        record.body = response.text
    record.is_settled = True


async def attach(world: World, step: Json) -> None:
    definition = world.definition(step["server"])
    kind = "attach" if "attach" in step else "replace"
    record = await management(world, kind, step[kind], server=definition)
    note_url(world, record, step.get("save"))


async def named(world: World, step: Json) -> None:
    kind = next(iter(step.keys() & _NAMED))
    workspace, name = step[kind]
    await management(world, kind, workspace, name=name)


async def listed(world: World, step: Json) -> None:
    await management(world, "list", step["list"])


async def acted(world: World, step: Json) -> None:
    """Do any action over REST; the record is of the kind's last word."""
    workspace, kind, params = step["act"]
    await management(world, kind, workspace, **params)


async def described(world: World, step: Json) -> None:
    record = world.begin("describe")
    body = await world.list(step["describe"])
    record.body, record.ok, record.is_settled = body, True, True
    world.saved[step["save"]] = [server.get("revision") for server in body["servers"]]


async def called(world: World, step: Json) -> None:
    workspace, server, tool, arguments = step["call"]
    action = {"kind": "workspace.mcp.call", "server": server, "tool": tool, "arguments": arguments}
    record = world.begin("call", step.get("as", tool if tool != "echo" else ""))
    if "as" in step:
        world.group.start_soon(run_action, world, record, workspace, action)
        with anyio.move_on_after(10):
            await record.operation.wait()
    else:
        await run_action(world, record, workspace, action)
    note_url(world, record)


async def called_each(world: World, step: Json) -> None:
    workspace, server = step["call_each"]
    body = await world.daemon.act(world.workspace(workspace), "workspace.mcp.tools", server=server)
    for tool in body["tools"]:
        await called(world, {"call": [workspace, server, tool["tool"], {}]})


async def one_read(world: World, step: Json) -> None:
    """Read what an address names; the page of a sign-in that this asks for is kept."""
    await read(world, step)
    note_url(world, world.last)


async def read_each(world: World, step: Json) -> None:
    workspace, server = step["read_each"]
    uris = world.case["peer"]["resources"]
    for uri in uris:
        await read(world, {"read": [workspace, f"{server}:///resources/{quote(uri, safe='')}"]})


async def prompted(world: World, step: Json) -> None:
    workspace, server, name, arguments = step["prompt"]
    query = "&".join(f"{quote(key)}={quote(value)}" for key, value in arguments.items())
    uri = f"{server}:///prompts/{quote(name, safe='')}" + (f"?{query}" if query else "")
    await read(world, {"read": [workspace, uri]})


async def cancelled(world: World, step: Json) -> None:
    [call] = world.of(step["cancel"])
    await management(world, "cancel", "w1", operation=call.operation_id)


async def awaited(world: World, step: Json) -> None:
    [call] = world.of(step["await_"])
    with anyio.move_on_after(10):
        while not call.is_settled:
            await anyio.sleep(0.01)


async def waited(_world: World, step: Json) -> None:
    await anyio.sleep(step["wait"] / 1000)


async def parallel(world: World, step: Json) -> None:
    async def one(each: Json) -> None:
        await anyio.sleep(each.get("after_ms", 0) / 1000)
        await act(world, each.get("do", each))

    async with anyio.create_task_group() as group:
        for each in step["parallel"]:
            group.start_soon(one, each)


async def parallel_many(world: World, step: Json) -> None:
    """Do as many at once: one call, or attach and detach, whose names differ and whose workspaces repeat."""
    if "call" in step["do"]:
        await parallel(world, {"parallel": [step["do"]] * step["parallel_n"]})
        return
    workspaces = step["do"]["attach_detach_random_ws"]

    async def one(number: int) -> None:
        workspace, name = f"w{number % workspaces}", f"p{number}"
        server = {"name": name, "transport": "stdio", "command": world.words["FAKE"]}
        if (await management(world, "attach", workspace, server=server)).ok:
            await management(world, "detach", workspace, name=name)

    async with anyio.create_task_group() as group:
        for number in range(step["parallel_n"]):
            group.start_soon(one, number)


async def repeated(world: World, step: Json) -> None:
    if "attach_detach" in step["do"]:
        await cycled(world, step)
        return
    for _ in range(step["repeat"]):
        await act(world, step["do"])


async def requested(world: World, step: Json) -> None:
    told = step["http"]
    headers = {
        name: value.replace("$DPORT", world.daemon.url.rpartition(":")[2])
        for name, value in told["h"].items()
    }
    record = world.begin("http")
    keep(record, await world.raw(told["m"], told["p"], headers, told["body"]))


async def probed(world: World, _step: Json) -> None:
    """Make what could be a notification: a call that its client gives up."""
    record = world.begin("call", "probe")
    world.http.answers["tools/call"] = stream(HANG)
    action = {"kind": "workspace.mcp.call", "server": "p", "tool": "echo", "arguments": {}}
    async with anyio.create_task_group() as group:
        group.start_soon(run_action, world, record, "w1", action)
        with anyio.fail_after(10):
            while not world.http.of("tools/call"):
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()
    with anyio.fail_after(10):
        await world.http.of("tools/call")[0].gone.wait()
    # The daemon never posts a notification: closing the stream is the cancellation.
    assert all("id" in message for message in world.messages)
    record.is_settled = True


async def opened(world: World, _step: Json) -> None:
    """Hold a run of state changes open; it settles when the daemon ends it."""
    record = world.begin("sse")
    world.group.start_soon(run_action, world, record, "w1", {"kind": "workspace.mcp.watch"})
    with anyio.fail_after(10):
        while not record.events:
            await anyio.sleep(0.01)


async def looked_at(world: World, _step: Json) -> None:
    record = world.begin("health")
    began = now_ms()
    async with world.daemon.client() as client:
        keep(record, await client.get("/healthz"))
    record.milliseconds = now_ms() - began


def install_files(world: World) -> None:
    """Put the case's programs where it wants them."""
    for path, text in world.case.get("files", {}).items():
        assert text == world.stdio.text
        world.stdio.install(Path(path))


async def peer_notified(world: World, step: Json) -> None:
    """Have the peer tell on its listen stream that a list of it changed: its tools, unless it watches another."""
    assert step["peer_notify"] == f"{world.case['peer'].get('watched', 'tools')}/list_changed"
    world.stdio.announce()
    listening = world.http.answers.get("subscriptions/listen")
    if isinstance(listening, Listening):
        listening.announce()


async def peer_changed(world: World, step: Json) -> None:
    tools = [{**ECHO, "name": name} for name in step["peer_tools"]]
    world.http.answers["tools/list"] = result({"tools": tools})


async def consented(world: World, _step: Json) -> None:
    await consent(world, management)


async def completed(world: World, step: Json) -> None:
    workspace, name, url = step["oauth.complete"]
    await management(world, "oauth.complete", workspace, name=name, callbackUrl=url)


async def expired(world: World, _step: Json) -> None:
    """Let every access token be over; the refresh token stays good."""
    assert world.oauth
    world.oauth.expire()


async def peer_told(world: World, step: Json) -> None:
    peer_now(world, step["peer_now"])


async def peer_waited(world: World, step: Json) -> None:
    """Wait until the peer got so many requests of a method."""
    [(method, count)] = step["peer_waits"].items()
    with anyio.fail_after(30):
        while sum(message["method"] == method for message in world.messages) < count:
            await anyio.sleep(0.02)


Step = Callable[[World, Json], Awaitable[None]]
STEPS: dict[str, Step] = {
    "attach": attach,
    "replace": attach,
    "detach": named,
    "reconnect": named,
    "list": listed,
    "act": acted,
    "describe": described,
    "call": called,
    "call_each": called_each,
    "read": one_read,
    "read_each": read_each,
    "prompt": prompted,
    "cancel": cancelled,
    "await_": awaited,
    "wait": waited,
    "parallel": parallel,
    "parallel_n": parallel_many,
    "repeat": repeated,
    "http": requested,
    "notify_probe": probed,
    "open_sse": opened,
    "health": looked_at,
    "peer_notify": peer_notified,
    "peer_tools": peer_changed,
    "peer_waits": peer_waited,
    "consent": consented,
    "oauth.complete": completed,
    "peer_now": peer_told,
    "expire": expired,
    **ASKS,
    **STARTS,
    **VARIES,
}
