"""What the cases expect of answers, asked after the steps. SPEC §problems; each expectation yields what is wrong.

What they expect of peers and processes is ``judging_peers``, of stores and the daemon ``judging_daemon``.
"""

import json
import os
from collections.abc import Callable, Iterator

from tests.faults.eventual import many
from tests.faults.world import Json, Record, World
from tests.support.agui_events import verify_run

Faults = Iterator[str]
EXACT = bool(os.environ.get("FAULTS_EXACT_TIMES"))
"""Judge times to the millisecond, on a machine that does nothing else."""


def allowed_ms(told: float) -> float:
    """Return the time that a bound stands for where other tests and processes run beside."""
    return told if EXACT else told * 3 + 3000


def facts(record: Record, told: Json) -> Faults:
    """Give what of an expectation's facts does not hold of a record."""
    if "within_ms" in told and record.milliseconds > allowed_ms(told["within_ms"]):
        yield f"took {record.milliseconds:.0f} ms"
    for name, member in (("status", "status"), ("type", "code"), ("retryable", "retryable")):
        if name in told and record.problem.get(member) != told[name]:
            yield f"{member} is {record.problem.get(member)}: {record.shown[:400]}"
    yield from words(record, told)


def words(record: Record, told: Json) -> Faults:
    """Give the words that a record should mention and does not, and those that it should not and does."""
    shown = record.shown
    for text in many(told.get("mentions", [])):
        if str(text) not in shown:
            yield f"does not mention {text}: {shown[:400]}"
    for text in many(told.get("lacks", [])) + many(told.get("not_mentions", [])):
        if str(text) in shown:
            yield f"mentions {text}: {shown[:400]}"


def is_ok(world: World, told: Json) -> Faults:
    for reference in many(told["ok"]):
        for record in world.of(reference):
            if not record.ok:
                yield f"{record.kind}#{record.number} is {record.shown[:400]}"
            yield from facts(record, {key: value for key, value in told.items() if key == "within_ms"})


def all_ok(world: World, _told: Json) -> Faults:
    yield from (f"{each.kind}#{each.number} is {each.shown[:400]}" for each in world.records if not each.ok)


def a_problem(world: World, told: Json) -> Faults:
    record = world.last
    if record.ok or record.problem.get("status") != told["problem"]:
        yield f"is {record.shown[:400]}"
    yield from facts(record, told)


def problem_on(world: World, told: Json) -> Faults:
    for reference in many(told["problem_on"]):
        for record in world.of(reference):
            if record.ok or "code" not in record.problem:
                yield f"{record.kind}#{record.number} is {record.shown[:400]}"
            yield from facts(record, told)


def problem_all(world: World, _told: Json) -> Faults:
    yield from (f"{each.kind}#{each.number} is ok" for each in world.records if each.ok)


def settled_on(world: World, told: Json) -> Faults:
    [record] = world.of(told["settled_on"])
    if not record.is_settled:
        yield "is open"
    yield from facts(record, told)


def sooner(world: World, told: Json) -> Faults:
    [first], [second] = (world.of(reference) for reference in told["sooner"])
    if first.milliseconds >= second.milliseconds:
        yield f"{first.milliseconds:.0f} ms and {second.milliseconds:.0f} ms"


def problem_by_field(world: World, _told: Json) -> Faults:
    """The one field of the definition that is wrong is named: the directory where there is one, else the command."""
    field = "cwd" if "cwd" in world.case["steps"][0]["server"] else "command"
    yield from words(world.last, {"mentions": field})


def within(world: World, told: Json) -> Faults:
    yield from facts(world.last, told)


def kind_within(kind: str) -> Callable[[World, Json], Faults]:
    def judged(world: World, told: Json) -> Faults:
        [bound] = told.values()
        yield from facts(world.of(kind)[0], {"within_ms": bound})

    return judged


def text(world: World, told: Json) -> Faults:
    found = "".join(part.get("text", "") for part in world.of("call")[-1].body.get("content", ()))
    if found != told["text"]:
        yield f"text is {found[:200]!r}: {world.of('call')[-1].shown[:300]}"


def text_len(world: World, told: Json) -> Faults:
    found = sum(len(part.get("text", "")) for part in world.of("call")[-1].body.get("content", ()))
    if found != told["text_len"]:
        yield f"length is {found}"


def mentions_in_problem(world: World, told: Json) -> Faults:
    yield from facts(world.last, {"mentions": told["problem_mentions"]})


def lacks_in_problem(world: World, told: Json) -> Faults:
    yield from facts(world.last, {"lacks": told["problem_lacks"]})


def mentions_on(world: World, told: Json) -> Faults:
    reference, words = told["mentions_on"]
    for record in world.of(reference):
        yield from facts(record, {"mentions": words})


def none_mentions(world: World, told: Json) -> Faults:
    for record in world.records:
        yield from facts(record, {"lacks": told["no_problem_mentions"]})


def statuses(world: World, told: Json) -> Faults:
    if isinstance(told["status"], int):
        if world.last.status != told["status"]:
            yield f"is {world.last.status}: {world.last.shown[:400]}"
        return
    found = [record.status for record in world.of("http")]
    if found != told["status"]:
        yield f"are {found}: {[record.shown[:200] for record in world.of('http')]}"


def header_absent(world: World, told: Json) -> Faults:
    for record in world.of("http"):
        if told["header_absent"].lower() in {name.lower() for name in record.headers}:
            yield f"http#{record.number} has it"


def rpc_error(world: World, told: Json) -> Faults:
    remote = world.last.problem.get("remote", {})
    if not _within(told["rpc_error"], remote):
        yield f"is {world.last.shown[:300]}"


def _within(part: Json, whole: Json) -> bool:
    return all(whole.get(name) == value for name, value in part.items())


def has(world: World, told: Json) -> Faults:
    """The answers to the steps that are named have these members."""
    reference, wanted = told["has"]
    for record in world.of(reference):
        if not _within(wanted, record.body):
            yield f"{record.kind}#{record.number} is {record.shown[:400]}"


def tool_error(world: World, _told: Json) -> Faults:
    if world.of("call")[-1].body.get("isError") is not True:
        yield world.of("call")[-1].shown[:300]


def no_rpc_error(world: World, _told: Json) -> Faults:
    yield from (record.shown[:300] for record in world.of("call") if not record.ok)


def progress(record: Record) -> int:
    """Return how many progress events a call's stream showed."""
    shown = [event for event in record.events if event["type"].startswith("ACTIVITY_")]
    return sum(event["activityType"] == "plurnk.mcp.progress" for event in shown)


def progress_count(world: World, told: Json) -> Faults:
    wanted = told.get("progress_count", told.get("progress_events"))
    found = [progress(record) for record in world.of("call")]
    if found != (wanted if isinstance(wanted, list) else [wanted]):
        yield f"found {found}"


def terminal_events(world: World, told: Json) -> Faults:
    for record in world.of("run"):
        verify_run(record.events)
        found = [event["type"] for event in record.events if event["type"] in {"RUN_FINISHED", "RUN_ERROR"}]
        if len(found) != told["terminal_events"] or record.events[-1]["type"] != found[-1]:
            yield f"are {found}"
        if "code" not in record.problem:
            yield f"is no Problem: {record.shown[:300]}"


def first_event(world: World, told: Json) -> Faults:
    yield from (
        f"is {each.events[0]}" for each in world.of("run") if each.events[0]["type"] != told["first_event"]
    )


def interactions(world: World, told: Json) -> Faults:
    found = sum(len(record.interrupts) for record in world.records)
    if found != told["interactions"]:
        yield f"found {found}"


def interrupts(world: World, told: Json) -> Faults:
    """What waits is told again, id for id, to a run that asks for nothing, and shown in the state."""
    record, [asking, between] = world.of("interrupts")[-1], world.of("run")
    asked = asking.interrupts
    shown = [event["snapshot"]["plurnk"] for event in record.events if event["type"] == "STATE_SNAPSHOT"]
    ids = {each["id"] for each in record.interrupts}
    if len(ids) != told["interrupts"] or ids != {each["id"] for each in asked}:
        yield f"{asked} were asked, {record.interrupts} wait: {record.shown[:400]}"
    if ids != shown[-1]["interactions"].keys():
        yield f"the state shows {shown[-1]['interactions']}"
    if not between.ok:
        yield f"the run between is {between.shown[:300]}"


def rounds_max(world: World, told: Json) -> Faults:
    """The call was asked more than once, each time anew, and not more often than this."""
    [record] = world.of("call")
    ends = [event.get("outcome", {}) for event in record.events if event["type"] == "RUN_FINISHED"]
    asked = [each["id"] for end in ends for each in end.get("interrupts", ())]
    if not 1 < len(asked) <= told["rounds_max"] or len(set(asked)) != len(asked) or record.interrupts:
        yield f"asked {len(asked)} times, {len(set(asked))} of them anew; {len(record.interrupts)} wait"


def attached_tools(world: World, told: Json) -> Faults:
    server = world.of("attach")[-1].body.get("server", {})
    if server.get("tools") != told["tools"]:
        yield f"are {server.get('tools')}: {world.of('attach')[-1].shown[:300]}"


def counted(world: World, told: Json) -> Faults:
    """The summary of the last attach has these members: a list, or how many entries one has."""
    server = world.of("attach")[-1].body.get("server", {})
    if not _within(told["counted"], server):
        yield f"{world.of('attach')[-1].shown[:500]}"


def withheld_with(world: World, told: Json) -> Faults:
    """The last attach withholds these and no others: name and reason of each."""
    server = world.of("attach")[-1].body.get("server", {})
    found = [[each["name"], each["reason"]] for each in server.get("withheld", ())]
    if found != told["withheld"]:
        yield f"{world.of('attach')[-1].shown[:500]}"


def progress_on(world: World, told: Json) -> Faults:
    reference, wanted = told["progress_on"]
    found = [progress(record) for record in world.of(reference)]
    if found != wanted:
        yield f"found {found}"


def withheld_named(world: World, told: Json) -> Faults:
    shown = world.of("attach#1")[0].shown
    yield from (f"{name} is not named: {shown[:400]}" for name in told["named"] if f'"{name}"' not in shown)


def no_crash(world: World, _told: Json) -> Faults:
    yield from (each.shown[:300] for each in world.records if each.problem.get("code") == "internal")
    if world.daemon.process is None or world.daemon.process.poll() is not None:
        yield "the daemon is gone"


def equal(world: World, told: Json) -> Faults:
    first, second = (world.saved[name] for name in told["equal"])
    if first != second or None in first or not first:
        yield f"{first} and {second}"


def differ(world: World, told: Json) -> Faults:
    first, second = (world.saved[name] for name in told["differ"])
    if first == second or None in second:
        yield f"{first} and {second}"


def literal_or_refused(world: World, _told: Json) -> Faults:
    """Neither the command nor the key was expanded: what the value names was not started, or is refused."""
    for record in world.of("attach")[1:]:
        if record.ok or "val" in json.dumps(record.body.get("errors", "")):
            yield record.shown[:300]


def startup(world: World, told: Json) -> Faults:
    wanted, output = told["startup"], world.facts.get("output", "")
    if world.facts.get("startup") != wanted.split()[0]:
        yield f"it {world.facts.get('startup')}"
        return
    if "advice" in wanted and not output.strip():
        yield "it said nothing"
    started = next((step["start_with"] for step in world.case["steps"] if "start_with" in step), {})
    if told.get("names_variable") and not any(name in output for name in started):
        yield f"no variable is named: {output[-500:]}"
    if told.get("lacks_values"):
        yield from (
            f"shows {each}: {output[-500:]}" for each in started.values() if len(each) > 4 and each in output
        )
    if "Traceback" in output:
        yield f"a traceback: {output[-500:]}"


JUDGES: dict[str, Callable[[World, Json], Faults]] = {
    "ok": is_ok,
    "ok_all": all_ok,
    "problem": a_problem,
    "problem_on": problem_on,
    "problem_all": problem_all,
    "settled_on": settled_on,
    "sooner": sooner,
    "problem_by_field": problem_by_field,
    "within_ms": within,
    "daemon_exit_within_ms": kind_within("stop"),
    "health_within_ms": kind_within("health"),
    "list_within_ms": kind_within("list"),
    "text": text,
    "text_len": text_len,
    "problem_mentions": mentions_in_problem,
    "problem_lacks": lacks_in_problem,
    "mentions_on": mentions_on,
    "no_problem_mentions": none_mentions,
    "status": statuses,
    "header_absent": header_absent,
    "rpc_error": rpc_error,
    "has": has,
    "tool_error": tool_error,
    "not_rpc_error": no_rpc_error,
    "progress_count": progress_count,
    "progress_events": progress_count,
    "terminal_events": terminal_events,
    "no_event_after_terminal": lambda world, _told: terminal_events(world, {"terminal_events": 1}),
    "first_event": first_event,
    "interactions": interactions,
    "interrupts": interrupts,
    "rounds_max": rounds_max,
    "tools": attached_tools,
    "counted": counted,
    "withheld": withheld_with,
    "progress_on": progress_on,
    "named": withheld_named,
    "no_crash": no_crash,
    "equal": equal,
    "differ": differ,
    "literal_or_refused": literal_or_refused,
    "startup": startup,
}
