"""What the cases expect of the daemon itself: its lists, its store, its log, what it holds. SPEC §state, §shutdown."""

import json
from collections.abc import Callable

import anyio

from tests.faults.eventual import SETTLING_SECONDS, Faults, Trace, becomes, many
from tests.faults.starting import held, memory
from tests.faults.world import Json, World
from tests.support.secrets_scan import leaks, leaks_in


async def listed(world: World, told: Json) -> Faults:
    servers = (await world.list(told["list"]))["servers"]
    if len(servers) != told["count"]:
        yield f"{servers}"


async def list_count(world: World, told: Json) -> Faults:
    servers = (await world.list("w1"))["servers"]
    if len(servers) != told["list_count"]:
        yield f"{servers}"


async def list_state(world: World, told: Json) -> Faults:
    [server] = [each for each in (await world.list("w1"))["servers"] if each["name"] == told["list_state"]]
    if ("is_" in told and server["state"] != told["is_"]) or server["state"] == told.get("not_"):
        yield f"{server}"


async def tools_in(world: World, told: Json) -> Faults:
    workspace, tools = told["tools_in"]
    found = [server["tools"] for server in (await world.list(workspace))["servers"]]
    if found != [tools]:
        yield f"{found}"


async def tools_become(world: World, told: Json) -> Faults:
    workspace, tools = told["tools_become"]
    found: list[Json] = []
    with anyio.move_on_after(SETTLING_SECONDS):
        while found != [tools]:
            found = [server["tools"] for server in (await world.list(workspace))["servers"]]
            await anyio.sleep(0.05)
    if found != [tools]:
        yield f"{found}"


async def shows(world: World, told: Json) -> Faults:
    """The list comes to show a server with these members; ``problem`` is a Problem's reason, or its code."""
    name, wanted = told["shows"]
    found: Json = {}
    with anyio.move_on_after(SETTLING_SECONDS):
        while not wanted.items() <= found.items():
            servers = {server["name"]: server for server in (await world.list("w1"))["servers"]}
            problem = servers[name].get("problem", {})
            found = {**servers[name], "problem": problem.get("reason", problem.get("code"))}
            found = {member: found.get(member) for member in wanted}
            await anyio.sleep(0.05)
    if found != wanted:
        yield f"{found}"


async def _registry(world: World) -> list[Json]:
    answer = await world.daemon.act(world.workspace("w1"), "workspace.mcp.tools", schemas=True)
    return answer["tools"]


async def effect(world: World, told: Json) -> Faults:
    found = {tool["tool"]: tool["effect"] for tool in await _registry(world)}
    if found != told["effect"]:
        yield f"{found}"


async def schema_verbatim(world: World, _told: Json) -> Faults:
    for sent, shown in zip(world.case["peer"]["tools"], await _registry(world), strict=True):
        for member in ("inputSchema", "outputSchema"):
            if json.dumps(sent.get(member)) != json.dumps(shown.get(member)):
                yield f"{member} is {shown.get(member)}"


async def diagnostic_mentions(world: World, told: Json) -> Faults:
    if not await becomes(lambda: told["diagnostic_mentions"] in world.log):
        yield f"{world.log[-500:]}"


async def log_lacks(world: World, told: Json) -> Faults:
    for words in many(told["log_lacks"]):
        if words.lower() in world.log.lower():
            yield f"{words} in {world.log[-1000:]}"


async def not_in(world: World, told: Json) -> Faults:
    secrets = {secret: secret for secret in many(told["text"])}
    shown = "".join(record.shown for record in world.records) + json.dumps(await world.list("w1"))
    for leak in leaks_in(secrets, (shown + world.log).encode(), where="answers or log"):
        yield leak
    for leak in leaks(secrets, [world.daemon.home]):
        yield leak


async def db_contains(world: World, told: Json) -> Faults:
    if not any(told["db_contains"] in (definition or "") for _, _, definition in world.rows()):
        yield f"{world.rows()}"


async def db_rows(world: World, told: Json) -> Faults:
    if [name for _, name, _ in world.rows()] != told["db_rows"]:
        yield f"{world.rows()}"


async def db_args(world: World, told: Json) -> Faults:
    if [json.loads(definition or "{}").get("args") for *_, definition in world.rows()] != [told["db_args"]]:
        yield f"{world.rows()}"


async def db_consistent(world: World, _told: Json) -> Faults:
    for number in range(10):
        workspace = f"w{number}"
        names = [server["name"] for server in (await world.list(workspace))["servers"]]
        stored = [name for each, name, _ in world.rows() if each == world.workspace(workspace)]
        if names != stored or names:
            yield f"{workspace} lists {names}, stores {stored}"


async def consistent(world: World, _told: Json) -> Faults:
    await becomes(lambda: len(world.stdio.alive) == 1)
    [running] = [birth["argv"][1:] for birth in world.stdio.births if birth["pid"] in world.stdio.alive]
    [stored] = [json.loads(definition or "{}").get("args", []) for *_, definition in world.rows()]
    [shown] = (await world.list("w1"))["servers"]
    if running != stored or shown["state"] != "connected":
        yield f"{running} runs, {stored} is stored, {shown} is shown"


async def one_of(world: World, _told: Json) -> Faults:
    attached, detached = world.of("attach")[0], world.of("detach")[0]
    if not detached.ok or not (attached.ok or attached.problem.get("code") == "server-changed"):
        yield f"{attached.shown} and {detached.shown}"


async def utf8_valid(world: World, _told: Json) -> Faults:
    for record in world.of("call"):
        path = f"/v1/workspaces/{world.workspace('w1')}/operations/{record.operation_id}"
        try:
            text = (await world.raw("GET", path, {}, "")).content.decode("utf-8")
            json.dumps([json.loads(text), record.events], ensure_ascii=False).encode("utf-8")
        except UnicodeError as failed:
            yield f"{record.kind}#{record.number}: {failed}"


async def rss_growth(world: World, told: Json) -> Faults:
    growth = memory(world.daemon.pid, "VmHWM") - world.facts["resident"]
    if growth > told["rss_growth_max_mib"]:
        yield f"{growth:.1f} MiB"


def growth_of(what: str) -> Callable[[World, Json], Faults]:
    """Return the judge of how many more of these the daemon holds, once what ends has ended."""

    async def judged(world: World, told: Json) -> Faults:
        [most] = told.values()
        more = 0
        with anyio.move_on_after(SETTLING_SECONDS):
            while (more := (await held(world))[what] - world.facts["held"][what]) > most:
                await anyio.sleep(0.1)
        if more > most:
            yield f"{more} more"

    return judged


async def daemon_alive(world: World, _told: Json) -> Faults:
    if world.daemon.process is None or world.daemon.process.poll() is not None:
        yield "it is gone"


async def daemon_exit(world: World, told: Json) -> Faults:
    [record] = world.of("stop")
    if record.status != told["daemon_exit"]:
        yield f"{record.status}"
    if "within_ms" in told and record.milliseconds > 3 * told["within_ms"]:
        yield f"took {record.milliseconds:.0f} ms"


async def db_file_unchanged(world: World, _told: Json) -> Faults:
    if await anyio.Path(world.daemon.home / "plurnk.db").read_bytes() != world.facts["database"]:
        yield "it changed"


async def sse_closed(world: World, _told: Json) -> Faults:
    [record] = world.of("sse")
    if not record.is_settled or record.events[-1].get("outcome") != {"type": "cancelled"}:
        yield f"{record.events[-1:]}"


async def absent(_world: World, told: Json) -> Faults:
    if await anyio.Path(told["absent"]).exists():
        yield "it is there"


DAEMON: dict[str, Trace] = {
    "list": listed,
    "list_count": list_count,
    "list_state": list_state,
    "shows": shows,
    "tools_in": tools_in,
    "tools_become": tools_become,
    "effect": effect,
    "schema_verbatim": schema_verbatim,
    "diagnostic_mentions": diagnostic_mentions,
    "log_lacks": log_lacks,
    "not_in": not_in,
    "db_contains": db_contains,
    "db_rows": db_rows,
    "db_args": db_args,
    "db_consistent": db_consistent,
    "consistent": consistent,
    "one_of": one_of,
    "utf8_valid": utf8_valid,
    "rss_growth_max_mib": rss_growth,
    "fd_growth_max": growth_of("fd"),
    "task_growth_max": growth_of("task"),
    "thread_growth_max": growth_of("thread"),
    "daemon_alive": daemon_alive,
    "daemon_exit": daemon_exit,
    "db_file_unchanged": db_file_unchanged,
    "sse_closed": sse_closed,
    "absent": absent,
}
