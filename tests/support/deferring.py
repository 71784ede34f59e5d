"""What a server that makes tasks answers: handles, states, and the results inside them."""

from typing import Any

from app.core.json_value import JsonObject

TASKS = "io.modelcontextprotocol/tasks"
TASK = "786512e2-9e0d-44bd-8f29-789f820fe840"
DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}


def handle(**members: Any) -> JsonObject:
    """Return a ``CreateTaskResult``; it is polled at once, nearly."""
    return {"resultType": "task", **_task("working"), **members}


def state(status: str, /, **members: Any) -> JsonObject:
    """Return the result of ``tasks/get``."""
    return {"resultType": "complete", **_task(status), **members}


def completed(result: JsonObject | None = None, **members: Any) -> JsonObject:
    """Return the state of a task that completed."""
    return state("completed", result=DONE if result is None else result, **members)


def wants(**requests: Any) -> JsonObject:
    """Return the state of a task that requires these inputs."""
    return state("input_required", inputRequests=requests)


def failed(code: Any = -32603, message: Any = "no", **members: Any) -> JsonObject:
    """Return the state of a task that failed with this error."""
    return state("failed", error={"code": code, "message": message, **members})


def _task(status: str) -> JsonObject:
    moment = "2026-07-28T10:30:00Z"
    return {
        "taskId": TASK,
        "status": status,
        "createdAt": moment,
        "lastUpdatedAt": moment,
        "ttlMs": 60000,
        "pollIntervalMs": 50,
    }
