"""What the cases expect of peers and their processes. SPEC §connection."""

import base64
import itertools
import json
from typing import Any

from tests.faults.eventual import Faults, Trace, becomes, many
from tests.faults.world import Json, World
from tests.support.processes import children, is_alive

CANCELLED = "notifications/cancelled"


async def alive_children(world: World, told: Json) -> Faults:
    if not await becomes(lambda: len(world.stdio.alive) == told["alive_children"]):
        yield f"{len(world.stdio.alive)} are alive"


async def alive_descendants(world: World, told: Json) -> Faults:
    if not await becomes(lambda: len(world.stdio.descendants) == told["alive_descendants"]):
        yield f"{len(world.stdio.descendants)} are alive"


async def zombies(world: World, told: Json) -> Faults:
    born = {birth["pid"] for birth in world.stdio.births}

    def dead() -> list[int]:
        return [pid for pid in children(world.daemon.pid) & born if not is_alive(pid)]

    if not await becomes(lambda: len(dead()) == told["zombies"]):
        yield f"{len(dead())}"


async def spawned(world: World, told: Json) -> Faults:
    """So many processes were born; over HTTP requests came, or none did."""
    if world.run.is_over_http:
        if bool(world.http.seen) != bool(told["spawned"]):
            yield f"{len(world.http.seen)} requests came"
    elif len(world.stdio.births) != told["spawned"]:
        yield f"{len(world.stdio.births)} were"


async def child_argv(world: World, told: Json) -> Faults:
    if world.stdio.births[-1]["argv"] != told["child_argv"]:
        yield f"{world.stdio.births[-1]['argv']}"


async def child_argv_tail(world: World, told: Json) -> Faults:
    argv = world.stdio.births[-1]["argv"]
    if argv[1:] != told["child_argv_tail"]:
        yield f"{argv}"


async def child_cwd(world: World, told: Json) -> Faults:
    if world.stdio.births[-1]["cwd"] != told["child_cwd"]:
        yield world.stdio.births[-1]["cwd"]


async def child_env_has(world: World, told: Json) -> Faults:
    env = world.stdio.births[-1]["env"]
    for name, value in told["child_env_has"].items():
        if env.get(name) != value:
            yield f"{name} is {env.get(name)!r}"


async def child_env_lacks(world: World, told: Json) -> Faults:
    env = world.stdio.births[-1]["env"]
    for name in told["child_env_lacks"]:
        if name in env:
            yield f"{name} is there"


async def child_env(world: World, told: Json) -> Faults:
    _, name, value = told["child_env"]
    if world.stdio.births[-1]["env"].get(name) != value:
        yield f"{world.stdio.births[-1]['env'].get(name)!r}"


async def peer_saw(world: World, told: Json) -> Faults:
    if told["peer_saw"] == "EOF":
        if not await becomes(lambda: b"EOF" in world.stdio.lines):
            yield "it did not"
        return
    method = told["peer_saw"]["method"]
    calls = [message["id"] for message in world.messages if message["method"] == "tools/call"]

    def seen() -> list[Any]:
        return [each["params"].get("requestId") for each in world.messages if each["method"] == method]

    wanted = [] if world.run.is_over_http else calls
    if not await becomes(lambda: seen() == wanted):
        yield f"{method} for {seen()}, the calls are {calls}"


async def http_stream_closed(world: World, _told: Json) -> Faults:
    if world.run.is_over_http and not await becomes(world.http.of("tools/call")[0].gone.is_set):
        yield "it is open"


async def told_to_stop(world: World, told: Json) -> Faults:
    """So many requests over stdio and HTTP were given up, each told once: by its id, or by the end of its stream."""

    def stopped() -> list[int]:
        read = world.stdio.messages
        given_up = [each["params"]["requestId"] for each in read if each["method"] == CANCELLED]
        asked = {each.get("id") for each in read if each["method"] != CANCELLED}
        return [len(given_up) * (set(given_up) <= asked), sum(seen.gone.is_set() for seen in world.http.seen)]

    if not await becomes(lambda: stopped() == told["told_to_stop"]):
        yield f"{stopped()}"


async def peer_requests(world: World, told: Json) -> Faults:
    if len(world.http.seen) != told["peer_requests"]:
        yield f"{len(world.http.seen)}"


async def peer2_requests(world: World, told: Json) -> Faults:
    if len(world.http2.seen) != told["peer2_requests"]:
        yield f"{len(world.http2.seen)}"


def _counts(world: World) -> dict[str, int]:
    methods = [message["method"] for message in world.messages]
    return {method: methods.count(method) for method in methods}


async def peer_rpc_lacks(world: World, told: Json) -> Faults:
    for method in many(told["peer_rpc_lacks"]):
        if method in _counts(world):
            yield f"{method} was sent"


async def peer_rpc_count(world: World, told: Json) -> Faults:
    for method, count in told["peer_rpc_count"].items():
        if _counts(world).get(method, 0) != count:
            yield f"{_counts(world).get(method, 0)}"


async def peer_rpc_count_max(world: World, told: Json) -> Faults:
    for method, count in told["peer_rpc_count_max"].items():
        if _counts(world).get(method, 0) > count:
            yield f"{_counts(world).get(method, 0)}"


async def poll_gaps_min_ms(world: World, told: Json) -> Faults:
    methods = ("tools/call", "tasks/get")
    moments = [seen.at for seen in world.http.seen if seen.method in methods]
    over_http = [(after - before) * 1000 for before, after in itertools.pairwise(moments)]
    gaps = over_http if world.run.is_over_http else world.stdio.gaps_ms(*methods)
    if len(gaps) != len(told["poll_gaps_min_ms"]):
        yield f"{gaps}"
    for gap, least in zip(gaps, told["poll_gaps_min_ms"], strict=False):
        if gap < least:
            yield f"{gaps}"


async def peer_rpc_seen(world: World, told: Json) -> Faults:
    if told["peer_rpc_seen"] not in _counts(world):
        yield "it was never sent"


async def open_listens(world: World, told: Json) -> Faults:
    def held() -> int:
        return sum(not seen.gone.is_set() for seen in world.http.of("subscriptions/listen"))

    if not await becomes(lambda: held() == told["open_listens"]):
        yield f"{held()}"


async def effects(world: World, told: Json) -> Faults:
    if _counts(world).get("tools/call", 0) != told["effects"]:
        yield f"{_counts(world)}"


async def peer_header(world: World, told: Json) -> Faults:
    seen = (world.http.of("tools/call") or world.http.seen)[-1]
    for name, value in told["peer_header"].items():
        if seen.headers.get(name.lower()) != value:
            yield f"{name} is {seen.headers.get(name.lower())!r}"


def _decoded(value: str) -> str:
    if value.startswith("=?base64?") and value.endswith("?="):
        return base64.b64decode(value[9:-2]).decode()
    return value


async def peer_header_decoded(world: World, told: Json) -> Faults:
    [name] = told["peer_header_decoded"]
    calls = world.http.of("tools/call")
    assert len(calls) == len(world.case["peer"]["tools"]), f"{len(calls)} calls came"
    for seen in calls:
        if _decoded(seen.headers[name.lower()]) != seen.params["name"]:
            yield f"{seen.headers[name.lower()]!r} for {seen.params['name']!r}"


async def name_mirrored(world: World, _told: Json) -> Faults:
    """What a read or a prompt names is in its header, as it is in the body."""
    asked = world.http.of("resources/read") + world.http.of("prompts/get")
    for seen in asked:
        if _decoded(seen.headers["mcp-name"]) != seen.params.get("uri", seen.params.get("name")):
            yield f"{seen.headers['mcp-name']!r} for {seen.params}"
    if not asked:
        yield "nothing was asked"


async def header_ascii(world: World, _told: Json) -> Faults:
    for seen in world.http.seen:
        if not all(name.isascii() and value.isascii() for name, value in seen.raw_headers):
            yield f"{seen.raw_headers}"


async def peer_called(world: World, told: Json) -> Faults:
    found = [each["params"]["name"] for each in world.messages if each["method"] == "tools/call"]
    if found != told["peer_called"]:
        yield f"{found}"


async def peer_read(world: World, told: Json) -> Faults:
    found = [each["params"]["uri"] for each in world.messages if each["method"] == "resources/read"]
    if found != told["peer_read"]:
        yield f"{found}"


async def peer_got(world: World, told: Json) -> Faults:
    """The requests of a method had these values of a parameter, in order."""
    method, name, wanted = told["peer_got"]
    found = [each["params"].get(name) for each in world.messages if each["method"] == method]
    if found != wanted:
        yield f"{found}"


def _requests(world: World, reference: str) -> list[Json]:
    """Return the messages that ``tools/call`` or ``tools/call#2`` names."""
    method, _, number = reference.partition("#")
    found = [message for message in world.messages if message["method"] == method]
    assert len(found) >= int(number or 1), f"{len(found)} {method} came"
    return [found[int(number) - 1]] if number else found


async def peer_param(world: World, told: Json) -> Faults:
    """A parameter came as it is told, to the letter; what is told as null was absent."""
    reference, name, value = told["peer_param"]
    for message in _requests(world, reference):
        wanted = {} if value is None else {name: value}
        found = {key: each for key, each in message["params"].items() if key == name}
        if json.dumps(found, sort_keys=True) != json.dumps(wanted, sort_keys=True):
            yield f"{str(found)[:300]}"


async def new_id(world: World, _told: Json) -> Faults:
    found = [message["id"] for message in _requests(world, "tools/call")]
    if len(found) < 2 or len(set(found)) != len(found):
        yield f"ids are {found}"


PEERS: dict[str, Trace] = {
    "alive_children": alive_children,
    "alive_descendants": alive_descendants,
    "zombies": zombies,
    "spawned": spawned,
    "child_argv": child_argv,
    "child_argv_tail": child_argv_tail,
    "child_cwd": child_cwd,
    "child_env_has": child_env_has,
    "child_env_lacks": child_env_lacks,
    "child_env": child_env,
    "peer_saw": peer_saw,
    "http_stream_closed": http_stream_closed,
    "told_to_stop": told_to_stop,
    "peer_requests": peer_requests,
    "peer2_requests": peer2_requests,
    "peer_rpc_lacks": peer_rpc_lacks,
    "peer_rpc_count": peer_rpc_count,
    "peer_rpc_count_max": peer_rpc_count_max,
    "poll_gaps_min_ms": poll_gaps_min_ms,
    "peer_rpc_seen": peer_rpc_seen,
    "open_listens": open_listens,
    "effects": effects,
    "peer_header": peer_header,
    "peer_header_decoded": peer_header_decoded,
    "name_mirrored": name_mirrored,
    "header_ascii": header_ascii,
    "peer_called": peer_called,
    "peer_read": peer_read,
    "peer_got": peer_got,
    "peer_param": peer_param,
    "new_id": new_id,
}
