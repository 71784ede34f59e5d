"""Without an exporter there are no spans, and a caller's own context goes no further than its request."""

import anyio
import pytest

from app.core.telemetry import PassingTracer, Telemetry
from app.core.trace_context import TraceContext

pytestmark = pytest.mark.spec("observe")

CONTEXT = TraceContext("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", "a=1")


def test_no_span_is_made_and_the_callers_context_is_carried() -> None:
    tracer = PassingTracer()
    assert tracer.carrier() == {}
    with tracer.called(CONTEXT):
        begin = tracer.begin
        assert begin("x", "internal", {"a": None}) is None
        assert tracer.carrier() == CONTEXT.carrier()
    assert tracer.carrier() == {}


async def test_a_task_belongs_to_the_call_that_started_it_while_that_lasts() -> None:
    tracer, is_over = PassingTracer(), anyio.Event()
    seen: list[object] = []

    async def outliving() -> None:
        seen.append(tracer.carrier())
        await is_over.wait()
        seen.append(tracer.carrier())

    async with anyio.create_task_group() as group:
        with tracer.called(CONTEXT):
            group.start_soon(outliving)
            await anyio.wait_all_tasks_blocked()
        is_over.set()
    assert seen == [CONTEXT.carrier(), {}]


def test_each_daemon_counts_for_itself() -> None:
    one, other = Telemetry(), Telemetry()
    one.measures.restarts.add("ok")
    assert other.measures.restarts.values == {}
