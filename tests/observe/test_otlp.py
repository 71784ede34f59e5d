"""Spans over OTLP, as a collector decodes them; the exporter never outlives or holds up its daemon."""

import threading
import time
from collections.abc import Generator

import anyio
import pytest

from app.core.trace_context import TraceContext
from app.observe.export_settings import TracesRefused
from app.observe.otlp import FLUSH_S, exporting_tracer
from tests.support.otlp_collector import CollectedSpan, Collector, otlp_collector

pytestmark = pytest.mark.spec("observe")

CALLER = TraceContext("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "a=1")
SERVER, INTERNAL, CLIENT = 2, 1, 3


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Generator[Collector]:
    with otlp_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        yield collector


def by_name(collector: Collector) -> dict[str, CollectedSpan]:
    return {span.name: span for span in collector.spans()}


async def test_spans_nest_as_the_work_does_under_the_callers(collector: Collector) -> None:
    async with exporting_tracer() as tracer:
        with tracer.called(CALLER):
            action = tracer.begin("action", "server", {"plurnk.workspace": "w", "plurnk.server": None})
            with action.entered():
                request = tracer.begin("request", "client", {})
                with request.entered():
                    sent = tracer.carrier()
                request.end("answered")
                beside = tracer.begin("beside", "internal", {})
            beside.end("failed")
            action.end("ok")
    spans = by_name(collector)
    assert len(collector.spans()) == 3
    assert {span.trace for span in spans.values()} == {CALLER.traceparent[3:35]}
    assert spans["action"].parent == CALLER.traceparent[36:52]
    assert spans["request"].parent == spans["beside"].parent == spans["action"].id
    assert sent == {"traceparent": f"{spans['request'].context}01", "tracestate": "a=1"}
    assert [spans[name].kind for name in ("action", "request", "beside")] == [SERVER, CLIENT, INTERNAL]
    assert spans["action"].attributes == {"plurnk.workspace": "w", "plurnk.outcome": "ok"}
    assert [spans[name].is_error for name in ("action", "request", "beside")] == [False, False, True]
    assert {span.service for span in spans.values()} == {"plurnk-mcpd"}


async def test_without_a_caller_a_trace_begins_here(collector: Collector) -> None:
    async with exporting_tracer() as tracer:
        assert tracer.carrier() == {}
        for name in ("one", "other"):
            tracer.begin(name, "server", {}).end("ok")
    spans = by_name(collector)
    assert [span.parent for span in spans.values()] == ["", ""]
    assert spans["one"].trace != spans["other"].trace


async def test_work_that_outlives_its_action_is_no_part_of_its_trace(collector: Collector) -> None:
    is_over = anyio.Event()
    async with exporting_tracer() as tracer, anyio.create_task_group() as group:

        async def outliving() -> None:
            tracer.begin("within", "internal", {}).end("ok")
            await is_over.wait()
            assert tracer.carrier() == {}
            tracer.begin("after", "internal", {}).end("ok")

        action = tracer.begin("action", "server", {})
        with action.entered():
            group.start_soon(outliving)
            await anyio.wait_all_tasks_blocked()
        action.end("ok")
        is_over.set()
    spans = by_name(collector)
    assert spans["within"].parent == spans["action"].id
    assert spans["after"].parent == ""
    assert spans["after"].trace != spans["action"].trace


async def test_the_variables_of_the_sdk_mean_what_they_say(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "another-name")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=of%20the%20collector")
    async with exporting_tracer() as tracer:
        tracer.begin("x", "server", {}).end("ok")
    assert [span.service for span in collector.spans()] == ["another-name"]
    assert collector.headers[0]["api-key"] == "of the collector"


async def test_a_trace_that_is_not_sampled_says_so_to_the_peer(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    async with exporting_tracer() as tracer:
        with tracer.called(CALLER):
            span = tracer.begin("x", "server", {})
            with span.entered():
                assert tracer.carrier()["traceparent"].startswith(CALLER.traceparent[:35])
                assert tracer.carrier()["traceparent"].endswith("-00")
            span.end("ok")
    assert collector.spans() == []


async def test_a_silent_collector_does_not_hold_up_the_end(collector: Collector) -> None:
    collector.is_silent.set()
    async with exporting_tracer() as tracer:
        tracer.begin("x", "server", {}).end("ok")
        began = time.monotonic()
    # The margin is for a busy machine; the SDK's own waits are 10 s for a request and 30 s for the end.
    assert time.monotonic() - began < FLUSH_S + 5


async def test_no_thread_is_left_once_the_collector_has_everything(collector: Collector) -> None:
    before = set(threading.enumerate())
    async with exporting_tracer() as tracer:
        tracer.begin("x", "server", {}).end("ok")
        exporting = {each for each in set(threading.enumerate()) - before if each.name.startswith("Otel")}
        assert exporting
    assert [span.name for span in collector.spans()] == ["x"]
    assert not any(each.is_alive() for each in exporting)


async def test_a_variable_without_a_usable_value_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "100000")
    with pytest.raises(TracesRefused):
        async with exporting_tracer():
            raise AssertionError
