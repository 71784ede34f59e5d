"""What the run of a tool call is told of its begin and of its result. SPEC §calls, §agui."""

from collections.abc import Callable

from app.core.events import RunEvent, ToolCallEnded, ToolCallStarted
from app.core.json_value import JsonObject
from app.core.steps import Completed, Failed
from app.operations.open_operation import OpenOperation

Observe = Callable[[RunEvent], None]


def tell_started(operation: OpenOperation, arguments: JsonObject, observe: Observe) -> None:
    """Tell the first run of a tool call that it began; a run that resumes it tells nothing of the kind."""
    work = operation.machine.work
    if work.tool is not None and work.tool_call_id is not None:
        observe(ToolCallStarted(operation.id, work.tool_call_id, work.server, work.tool, arguments))


def tell_result(
    operation_id: str, tool_call_id: str | None, ending: Completed | Failed | None, observe: Observe
) -> None:
    """Tell the run of a tool call's result, where it has one."""
    if tool_call_id is None or not isinstance(ending, Completed):
        return
    content, is_error = ending.result.get("content"), ending.result.get("isError")
    if isinstance(content, list):
        observe(ToolCallEnded(operation_id, tool_call_id, is_error is True, content))
