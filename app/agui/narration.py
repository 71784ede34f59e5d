"""Telling one run's story: what happens inside it, handed to its stream in order. SPEC §agui.

Everything here is called without awaiting, in the moment it happens.
"""

from typing import assert_never

from app.agui.events import (
    progress_delta,
    progress_snapshot,
    step_finished,
    step_started,
    tool_call,
    tool_call_result,
)
from app.agui.stream import EventStream
from app.core.answers import Progress
from app.core.events import (
    OperationProgressed,
    PreparationEnded,
    PreparationStarted,
    RunEvent,
    ToolCallEnded,
    ToolCallStarted,
)


class Narration:
    """Remembers what the client was shown, so that each event follows from the last."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream
        self._open_steps: list[str] = []
        self._progress: dict[str, Progress] = {}

    def observe(self, event: RunEvent) -> None:
        """Show what happened inside the run."""
        match event:
            case PreparationStarted(server):
                self._begin_step(server)
            case PreparationEnded(server):
                self._end_step(server)
            case ToolCallStarted():
                self._stream.emit(*tool_call(event))
            case OperationProgressed():
                self._progressed(event)
            case ToolCallEnded():
                self._stream.emit(tool_call_result(event))
            case _:
                assert_never(event)

    def close(self) -> None:
        """End what is open still: a run that was stopped in the middle of a step has to close it."""
        for server in tuple(self._open_steps):
            self._end_step(server)

    def _begin_step(self, server: str) -> None:
        if server not in self._open_steps:
            self._open_steps.append(server)
            self._stream.emit(step_started(server))

    def _end_step(self, server: str) -> None:
        if server in self._open_steps:
            self._open_steps.remove(server)
            self._stream.emit(step_finished(server))

    def _progressed(self, event: OperationProgressed) -> None:
        since = self._progress.get(event.operation)
        encoded = progress_snapshot(event) if since is None else progress_delta(event, since)
        if self._stream.emit_progress(encoded):
            self._progress[event.operation] = event.progress.following(since)
