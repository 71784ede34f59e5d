"""Task: what a server made of a request, and what is asked of it next until it is over. Sans-IO. SPEC §calls.

MCP ext-tasks, final shape (SEP-2663). Judged is what is used: the id, the status, the interval and what belongs to the
status. A polled state is as new as can be; of one that the server told of by itself ``lastUpdatedAt`` says whether it
is. Not here: what an operation makes of a status (``operation``); ``ttlMs``, for the server alone decides when it drops
a task and says so when it is asked.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum

from app.core.answers import RemoteError, Result
from app.core.elicitation import InputRequired
from app.core.interrupts import ResumeEntry
from app.core.json_value import Json, JsonObject
from app.core.operation_problems import ToolResultInvalid
from app.core.steps import Send, Wait

INTERVAL_MIN_MS, INTERVAL_DEFAULT_MS, INTERVAL_MAX_MS = 50, 1000, 86_400_000
"""Between two polls; the maximum is longer than any deadline and fits every clock."""
ID_MAX = 4096
"""Characters of a task's id, which goes into a header."""
MISSES_MAX = 10
"""How many requests about a task may fail to reach its server in a row."""
MISS_FIRST_S, MISS_MAX_S = 1.0, 16.0
"""The wait after a miss where the interval is shorter; it doubles."""


class TaskStatus(StrEnum):
    """Where a task stands."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED})


class Task:
    """One task of a server, from its handle on."""

    def __init__(self, handle: JsonObject, server: str) -> None:
        """Take the ``CreateTaskResult``, of which ``begun`` judges the rest.

        Raises:
            ToolResultInvalid: the handle has no id by which the task can be named.
        """
        self._server = server
        self.id = self._id_of(handle)
        self.is_over = False
        """Whether the server said that it ended, or that it knows it no more."""
        self._interval_ms = INTERVAL_DEFAULT_MS
        self._asked: set[str] = set()
        """Keys of the input requests that were put to somebody; each is put once."""
        self._misses = 0
        self._update: Send | None = None
        """The update that is under way."""
        self._told: Result | None = None
        """The newest state that the server told of and that did not count yet."""
        self._updated = _updated(handle)
        """When the server changed what was observed last, where it says so."""

    def begun(self, handle: JsonObject) -> Wait:
        """Return the first poll; whatever the handle's status, what follows from it comes with that.

        Raises:
            ToolResultInvalid: the handle breaks the protocol; the task is there all the same.
        """
        self._status_of(handle)
        self._take_interval(handle)
        return self.poll()

    @property
    def is_updating(self) -> bool:
        """Whether the request about it that is under way is an update."""
        return self._update is not None

    def poll(self) -> Wait:
        """Return the next poll, after the interval as the server gave it last."""
        self._misses, self._update = 0, None
        return Wait(self._interval_ms / 1000, self._get())

    def update(self, required: InputRequired, entries: Sequence[ResumeEntry]) -> Send:
        """Return the one update that carries the answers to everything that was asked."""
        self._update = Send("tasks/update", required.retry({"taskId": self.id}, entries))
        return self._update

    def missed(self, *, was_sent: bool) -> Wait | None:
        """Return what is sent after a request that nobody answered, or None after too many in a row.

        Polls change nothing and are sent again. An update that may have arrived is not: the next poll shows.
        """
        self._misses += 1
        if self._misses > MISSES_MAX:
            return None
        seconds = max(self._interval_ms / 1000, min(MISS_MAX_S, MISS_FIRST_S * 2 ** (self._misses - 1)))
        if was_sent:
            self._update = None
        return Wait(seconds, self._update or self._get())

    def observe(self, state: JsonObject) -> TaskStatus:
        """Return the status of a ``DetailedTask`` of it, after taking over its interval.

        Raises:
            ToolResultInvalid: it is of another task, or breaks the protocol.
        """
        status = self._own_status_of(state)
        self.is_over = status in TERMINAL
        self._take_interval(state)
        self._updated = _updated(state)
        return status

    def tell(self, state: Result) -> None:
        """Keep a state that the server told of until it counts; one that is not whole, or not the newest, is dropped.

        MCP ext-tasks, Task Status Notifications. A task that is over stays so, whatever its server's clock says.
        """
        status = self._status_of_whole(state.value)
        if self.is_over or status is None:
            return
        self.is_over = status in TERMINAL
        last = self._updated if self._told is None else _updated(self._told.value)
        if self.is_over or not _is_later(last, _updated(state.value)):
            self._told = state

    def take_told(self) -> Result | None:
        """Return the state that was told and counts now, once; while an update is under way only the end does."""
        if self.is_updating and not self.is_over:
            return None
        told, self._told = self._told, None
        return told

    def newest(self, polled: Result) -> Result:
        """Return the polled state, or the one that was told meanwhile where the server changed it later."""
        told = self.take_told()
        is_later = told is not None and _is_later(_updated(told.value), _updated(polled.value))
        return (
            told if told is not None and is_later and polled.value.get("status") not in TERMINAL else polled
        )

    def fresh_requests(self, state: JsonObject) -> JsonObject:
        """Return the input requests of the state that were never returned before.

        Raises:
            ToolResultInvalid: it has none.
        """
        requests = self._requests_of(state)
        fresh: JsonObject = {key: each for key, each in requests.items() if key not in self._asked}
        self._asked.update(fresh)
        return fresh

    def result(self, state: JsonObject) -> JsonObject:
        """Return what the request would have been answered with.

        Raises:
            ToolResultInvalid: it is no complete result.
        """
        result = state.get("result")
        if not isinstance(result, dict) or result.get("resultType") not in (None, "complete"):
            raise ToolResultInvalid(self._server, "its task completed without a complete result")
        return result

    def error(self, state: JsonObject) -> RemoteError:
        """Return the JSON-RPC error that the task failed with.

        Raises:
            ToolResultInvalid: it has none.
        """
        match state.get("error"):
            case {"code": int(code), "message": str(message), **rest} if not isinstance(code, bool):
                return RemoteError(code, message, rest.get("data"))
            case _:
                raise ToolResultInvalid(self._server, "its task failed without a JSON-RPC error")

    def _get(self) -> Send:
        return Send("tasks/get", {"taskId": self.id})

    def _id_of(self, task: JsonObject) -> str:
        identifier = task.get("taskId")
        if not isinstance(identifier, str) or not 0 < len(identifier) <= ID_MAX:
            raise ToolResultInvalid(self._server, f"its taskId is no text of 1 to {ID_MAX} characters")
        return identifier

    def _status_of(self, task: JsonObject) -> TaskStatus:
        try:
            return TaskStatus(str(task.get("status")))
        except ValueError:
            raise ToolResultInvalid(self._server, "the status of its task is unknown") from None

    def _own_status_of(self, state: JsonObject) -> TaskStatus:
        if state.get("resultType") not in (None, "complete", "task"):
            raise ToolResultInvalid(self._server, "the resultType of a task's state is unknown")
        if self._id_of(state) != self.id:
            raise ToolResultInvalid(self._server, "the state of another task came")
        return self._status_of(state)

    def _status_of_whole(self, state: JsonObject) -> TaskStatus | None:
        """Return the status of a state that has all that belongs to it, else None."""
        try:
            status = self._own_status_of(state)
            self._interval_of(state)
            match status:
                case TaskStatus.INPUT_REQUIRED:
                    self._requests_of(state)
                case TaskStatus.COMPLETED:
                    self.result(state)
                case TaskStatus.FAILED:
                    self.error(state)
                case TaskStatus.WORKING | TaskStatus.CANCELLED:
                    pass
        except ToolResultInvalid:
            return None
        return status

    def _requests_of(self, state: JsonObject) -> JsonObject:
        requests = state.get("inputRequests")
        if not isinstance(requests, dict):
            raise ToolResultInvalid(self._server, "its task requires input and asks for none")
        return requests

    def _take_interval(self, task: JsonObject) -> None:
        """Keep the interval, bounded; where it is absent or null the last one stays."""
        interval = self._interval_of(task)
        if interval is not None:
            self._interval_ms = int(min(max(interval, INTERVAL_MIN_MS), INTERVAL_MAX_MS))

    def _interval_of(self, task: JsonObject) -> float | None:
        interval: Json = task.get("pollIntervalMs")
        if interval is None:
            return None
        if isinstance(interval, bool) or not isinstance(interval, int | float) or interval % 1:
            raise ToolResultInvalid(self._server, "the pollIntervalMs of its task is no integer")
        return interval


def _updated(state: JsonObject) -> datetime | None:
    """Return when the server says that it changed the task last; None where that is no time."""
    try:
        updated = datetime.fromisoformat(str(state.get("lastUpdatedAt")))
    except ValueError:
        return None
    return updated if updated.tzinfo is not None else updated.replace(tzinfo=UTC)


def _is_later(one: datetime | None, other: datetime | None) -> bool:
    """Return whether the one is known to be later than the other."""
    return one is not None and other is not None and one > other
