"""Spans of the daemon's work, exported over OTLP as the ``OTEL_*`` variables say. SPEC §observe.

Loaded only where they ask for it. The provider is the daemon's own: nothing is made global. What the exporter's thread
has not sent when the daemon ends is sent within ``FLUSH_S``, or lost.
"""

import threading
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace import Tracer as OtelTracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from app.core.telemetry import Role
from app.core.trace_context import TraceContext
from app.observe.export_settings import TracesRefused

T = TypeVar("T")
NAME: Final = "plurnk-mcpd"
FLUSH_S: Final = 0.7
"""How long the end of the daemon waits for the last spans to be taken."""
OUTCOME: Final = "plurnk.outcome"
GOOD: Final = frozenset({"ok", "pending", "interrupted", "completed", "answered"})
"""Outcomes that are no error."""

_KINDS: Final[Mapping[Role, SpanKind]] = {
    "server": SpanKind.SERVER,
    "internal": SpanKind.INTERNAL,
    "client": SpanKind.CLIENT,
}
_W3C: Final = TraceContextTextMapPropagator()
_NOWHERE: Final = Context()


@dataclass(slots=True, eq=False)
class _Work:
    """What is under way, for the task that does it and the tasks it starts."""

    context: Context
    is_over: bool = False


_WORK: ContextVar[_Work | None] = ContextVar("plurnk_work", default=None)


class OtlpSpan:
    """Implements ``telemetry.Span``."""

    __slots__ = ("_span", "_work")

    def __init__(self, span: OtelSpan, parent: Context) -> None:
        self._span = span
        self._work = _Work(set_span_in_context(span, parent))

    def entered(self) -> AbstractContextManager[None]:
        """Make what begins inside the block a part of it."""
        return _under_way(self._work)

    async def around(self, work: Awaitable[T]) -> T:
        """Do the work as a part of it."""
        with self.entered():
            return await work

    def end(self, outcome: str) -> None:
        """Note how it ended and hand it to the exporter."""
        self._work.is_over = True
        self._span.set_attribute(OUTCOME, outcome)
        if outcome not in GOOD:
            self._span.set_status(Status(StatusCode.ERROR, outcome))
        self._span.end()


class OtlpTracer:
    """Implements ``telemetry.Tracer``."""

    def __init__(self, tracer: OtelTracer) -> None:
        self._tracer = tracer

    @contextmanager
    def called(self, context: TraceContext) -> Generator[None]:
        """Make what begins inside the block a part of the caller's trace."""
        work = _Work(_W3C.extract(context.carrier(), _NOWHERE))
        try:
            with _under_way(work):
                yield
        finally:
            work.is_over = True

    def begin(self, name: str, role: Role, attributes: Mapping[str, str | None]) -> OtlpSpan:
        """Return a span of what is under way."""
        parent = _context()
        known = {key: value for key, value in attributes.items() if value is not None}
        return OtlpSpan(
            self._tracer.start_span(name, context=parent, kind=_KINDS[role], attributes=known), parent
        )

    def carrier(self) -> Mapping[str, str]:
        """Return ``traceparent`` and ``tracestate`` of what is under way."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier, _context())
        return carrier


@asynccontextmanager
async def exporting_tracer() -> AsyncGenerator[OtlpTracer]:
    """Give a tracer whose spans are exported.

    The exporter's thread has ended after the block. One whose collector does not answer is left behind: it holds up
    neither the daemon nor the process.

    Raises:
        TracesRefused: an ``OTEL_*`` variable of the process's environment has no usable value.
    """
    try:
        provider = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        processor = BatchSpanProcessor(OTLPSpanExporter())
    except ValueError as error:
        raise TracesRefused(f"An OTEL_* variable has no usable value: {error}.") from error
    provider.add_span_processor(processor)
    try:
        yield OtlpTracer(provider.get_tracer(NAME, version(NAME)))
    finally:
        ending = threading.Thread(target=processor.shutdown, name="plurnk-traces-end", daemon=True)
        ending.start()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(ending.join, FLUSH_S)


def _resource() -> Resource:
    """Return who we are, unless ``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES`` say otherwise."""
    said = OTELResourceDetector().detect().attributes
    return Resource.create({SERVICE_NAME: NAME, SERVICE_VERSION: version(NAME), **said})


def _context() -> Context:
    work = _WORK.get()
    return _NOWHERE if work is None or work.is_over else work.context


@contextmanager
def _under_way(work: _Work) -> Generator[None]:
    token = _WORK.set(work)
    try:
        yield
    finally:
        _WORK.reset(token)
