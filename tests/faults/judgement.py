"""Judging a whole run: every expectation of the case, those of variants and alternatives among them. SPEC §status."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.faults.judging import JUDGES
from tests.faults.judging_daemon import DAEMON
from tests.faults.judging_oauth import OAUTH
from tests.faults.judging_peers import PEERS
from tests.faults.world import Json, Record, World

TRACES = {**PEERS, **DAEMON, **OAUTH}
ALTERNATIVES = {"any_of", "by_variant", "with_tools_empty"}


async def judge_all(world: World) -> list[str]:
    """Return what is wrong, one line each."""
    faults: list[str] = []
    if (world.run.is_over_http and world.stdio.births) or (world.run.is_over_stdio and world.http.seen):
        faults.append("the other transport was used")
    for expectation in world.case["expect"]:
        told = json.dumps(expectation, ensure_ascii=False)[:160]
        faults += [f"{told}: {fault}" for fault in await judge(world, expectation)]
    return faults


async def judge(world: World, expectation: Json) -> list[str]:
    """Return what is wrong by one expectation."""
    try:
        for name in expectation:
            if name in JUDGES:
                return list(JUDGES[name](world, expectation))
            if name in TRACES:
                return [fault async for fault in TRACES[name](world, expectation)]
            if name in ALTERNATIVES:
                return await _alternative(world, name, expectation[name])
    except (AssertionError, KeyError, IndexError, ValueError) as failed:
        return [f"{type(failed).__name__}: {failed}"]
    return ["nobody judges this"]


async def _alternative(world: World, name: str, told: Any) -> list[str]:
    match name:
        case "any_of":
            each = [await judge(world, expectation) for expectation in told]
            return [] if [] in each else [fault for faults in each for fault in faults]
        case "with_tools_empty":
            return list(_by_variant(world, told["by_variant"], world.of("attach#2")[0]))
        case _ if told == "startup fails":
            return await judge(world, {"startup": "fails"})
        case _:
            return list(_by_variant(world, told, world.of("attach#1")[0]))


def _by_variant(world: World, told: Any, record: Record) -> Iterator[str]:
    """Judge by the sentence that a variant has: ``ok``, a status, or ``problem STATUS CODE names NAME``."""
    tools = world.case.get("peer", {}).get("tools", [])
    if told == "ok":
        nameless = [f"#{number}" for number, tool in enumerate(tools) if not tool["name"]]
        if not record.ok or [each["name"] for each in record.body["server"]["withheld"]] != nameless:
            yield record.shown[:400]
        return
    if isinstance(told, int):
        if record.problem.get("status") != told:
            yield record.shown[:400]
        return
    match = re.match(r"problem (\d+) (\S+) names (.+?)(;|$)", told)
    assert match, f"nobody judges {told}"
    name = max((tool["name"] for tool in tools), key=len) if "300" in match[3] else match[3]
    found = (record.problem.get("status"), record.problem.get("code"), record.problem.get("names"))
    if found != (int(match[1]), match[2], [name]):
        yield record.shown[:600]
