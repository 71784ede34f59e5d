"""GET /metrics, read by the Prometheus client library's own parser."""

import re
from collections.abc import Iterable

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from app.core.answers import Result
from app.core.measures import BOUNDS_S, Measures, single
from app.observe.exposition import Exposition
from tests.support.doors_house import DoorsHouse, call, doors_house, text_result

pytestmark = pytest.mark.spec("observe")


def families(text: str) -> dict[str, Metric]:
    found = {family.name: family for family in text_string_to_metric_families(text)}
    assert found
    return found


def samples(family: Metric) -> dict[frozenset[tuple[str, str]], float]:
    return {frozenset(sample.labels.items()): sample.value for sample in family.samples}


def labels(**values: str) -> frozenset[tuple[str, str]]:
    return frozenset(values.items())


async def scraped(doors: DoorsHouse) -> dict[str, Metric]:
    answer = await doors.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (
        200,
        "text/plain; version=0.0.4; charset=utf-8",
    )
    return families(answer.text)


def test_every_measure_is_shown_as_what_it_is() -> None:
    measures = Measures()
    measures.actions.add("k", "ok")
    measures.actions.add("k", 'a "quoted"\n\\ word')
    for seconds in (0.0005, 0.3, 99.0):
        measures.action_seconds.add(seconds, "k")
    found = families(Exposition(measures, [single("held", "What is held.", lambda: 7)])().decode())
    actions = found["plurnk_actions"]
    assert (actions.type, actions.documentation) == ("counter", "Actions that ended.")
    assert samples(actions) == {
        labels(kind="k", outcome="ok"): 1.0,
        labels(kind="k", outcome='a "quoted"\n\\ word'): 1.0,
    }
    assert (found["held"].type, samples(found["held"])) == ("gauge", {labels(): 7.0})
    times = found["plurnk_action_duration_seconds"]
    buckets = [sample for sample in times.samples if sample.name.endswith("_bucket")]
    assert times.type == "histogram"
    assert [float(sample.labels["le"]) for sample in buckets] == [*BOUNDS_S, float("inf")]
    assert [sample.value for sample in buckets] == [1 + (bound >= 0.3) for bound in BOUNDS_S] + [3]
    rest = {
        sample.name.rpartition("_")[2]: sample.value for sample in times.samples if "le" not in sample.labels
    }
    assert rest == {"count": 3.0, "sum": pytest.approx(99.3005)}


def test_two_daemons_in_one_process_have_a_registry_each() -> None:
    one, other = Measures(), Measures()
    one.restarts.add("ok")
    assert samples(families(Exposition(one, [])().decode())["plurnk_restarts"]) != {}
    assert samples(families(Exposition(other, [])().decode())["plurnk_restarts"]) == {}


async def test_a_running_daemon_is_scraped() -> None:
    async with doors_house() as doors:
        doors.peer.automatic = lambda _: Result(text_result("hello"), 9)
        assert (await doors.act(call("echo"))).status_code == 200
        assert (await doors.act(call("deploy"))).status_code == 202
        assert (await doors.act(call("nothing"))).status_code == 404
        found = await scraped(doors)
    kind = "workspace.mcp.call"
    assert samples(found["plurnk_actions"]) == {
        labels(kind=kind, outcome="ok"): 1.0,
        labels(kind=kind, outcome="interrupted"): 1.0,
        labels(kind=kind, outcome="tool-not-found"): 1.0,
    }
    assert samples(found["plurnk_operations"]) == {labels(kind=kind, ending="completed"): 1.0}
    assert samples(found["plurnk_open_operations"]) == {labels(): 1.0}
    assert samples(found["plurnk_action_duration_seconds"])[labels(kind=kind)] >= 0
    assert "process_resident_memory_bytes" in found


@pytest.mark.spec("security")
async def test_the_metrics_are_the_operators() -> None:
    async with doors_house() as doors:
        refused = await doors.get("/metrics", token=doors.tokens.for_workspace("w"))
        stranger = await doors.get("/metrics", token="wrong")
    assert (refused.status_code, refused.json()["code"]) == (403, "workspace-refused")
    assert stranger.status_code == 401


async def test_no_name_that_somebody_chose_is_a_label() -> None:
    async with doors_house() as doors:
        for name in ("chosen-workspace", "another.one"):
            await doors.act(call("chosen-tool"), workspace=name)
            await doors.act({"kind": "chosen.kind"}, workspace=name)
            await doors.act({"kind": "workspace.mcp.reconnect", "name": "chosen-server"}, workspace=name)
        answer = await doors.get("/metrics")
    assert "chosen" not in answer.text
    assert "another.one" not in answer.text
    words = re.compile(r"[a-z][a-z.-]*|[0-9.e+]+|\+Inf|[A-Za-z0-9.]+")
    assert all(words.fullmatch(value) for value in _label_values(families(answer.text).values()))


def _label_values(found: Iterable[Metric]) -> list[str]:
    values = [value for family in found for sample in family.samples for value in sample.labels.values()]
    assert values
    return values
