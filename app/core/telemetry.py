"""What a daemon tells of its own work: the measures it counts in, and the tracer that shows who caused what.

SPEC §observe. Two tracers: ``PassingTracer`` makes no spans and passes a caller's own trace context on to the servers;
``observe.otlp`` exports spans. Who is under way is known to the task that works and to the tasks it starts; a task that
outlives the work it was started by belongs to no trace any more.
"""

from collections.abc import Awaitable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar

from app.core.measures import Measures
from app.core.trace_context import TraceContext

T = TypeVar("T")
Role: TypeAlias = Literal["server", "internal", "client"]
"""Whether a span serves a request, neither, or makes one."""


class Span(Protocol):
    """One stretch of work."""

    async def around(self, work: Awaitable[T]) -> T:
        """Do the work as a part of it."""
        ...

    def end(self, outcome: str) -> None:
        """Note how it ended, by a word of this house; called once."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    def called(self, context: TraceContext) -> AbstractContextManager[None]:
        """Make what begins inside the block a part of the caller's trace."""
        ...

    def begin(self, name: str, role: Role, attributes: Mapping[str, str | None]) -> Span | None:
        """Return a span of what is under way, if any are made; attributes without a value are left out."""
        ...

    def carrier(self) -> Mapping[str, str]:
        """Return the trace context of what is under way, to be sent on; empty where there is none."""
        ...


@dataclass(slots=True, eq=False)
class _Call:
    carrier: Mapping[str, str]
    is_over: bool = False


_CALL: ContextVar[_Call | None] = ContextVar("plurnk_call", default=None)


class PassingTracer:
    """Makes no spans; what a caller sent goes on to the servers that its request reaches."""

    @contextmanager
    def called(self, context: TraceContext) -> Generator[None]:
        """Pass this context on inside the block."""
        call = _Call(context.carrier())
        token = _CALL.set(call)
        try:
            yield
        finally:
            call.is_over = True
            _CALL.reset(token)

    def begin(self, name: str, role: Role, attributes: Mapping[str, str | None]) -> None:
        """Return no span."""

    def carrier(self) -> Mapping[str, str]:
        """Return the caller's context while its request is under way."""
        call = _CALL.get()
        return {} if call is None or call.is_over else call.carrier


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What every room of a daemon counts and traces with."""

    measures: Measures = field(default_factory=Measures)
    tracer: Tracer = field(default_factory=PassingTracer)
