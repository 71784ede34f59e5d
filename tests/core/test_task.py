"""A task by itself: what its handle and states must have, when it is polled, what is asked of it."""

from typing import Any

import pytest

from app.core.answers import RemoteError
from app.core.elicitation import input_required
from app.core.json_value import JsonObject
from app.core.operation_problems import ToolResultInvalid
from app.core.steps import Send, Wait
from app.core.task import MISSES_MAX, Task, TaskStatus
from tests.support.deferring import DONE, TASK, completed, failed, handle, state, wants
from tests.support.eliciting import fills, form

pytestmark = pytest.mark.spec("calls")

GET = Send("tasks/get", {"taskId": TASK})


def task(**members: Any) -> Task:
    made = Task(handle(**members), "p")
    made.begun(handle(**members))
    return made


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [
        (None, 1.0),
        (700, 0.7),
        (700.0, 0.7),
        (50, 0.05),
        (49, 0.05),
        (0, 0.05),
        (-9007199254740991, 0.05),
        (9007199254740991, 86400.0),
        (1e300, 86400.0),
    ],
)
def test_the_first_poll_waits_for_the_interval_of_the_handle(interval: Any, seconds: float) -> None:
    given = handle(pollIntervalMs=interval)
    assert Task(given, "p").begun(given) == Wait(seconds, GET)


def test_the_latest_interval_counts_and_stays_where_none_is_given() -> None:
    polled = task(pollIntervalMs=700)
    polled.observe(state("working", pollIntervalMs=300))
    assert polled.poll() == Wait(0.3, GET)
    polled.observe(state("working", pollIntervalMs=None))
    assert polled.poll() == Wait(0.3, GET)


IDS = [None, "", 7, ["t"], "t" * 4097]
STATUSES = [None, "", "submitted", 1, ["working"], {"status": "working"}]
INTERVALS = ["700", 0.5, True, [], float("inf")]
FAULTY = [
    *({"taskId": each} for each in IDS),
    *({"status": each} for each in STATUSES),
    *({"pollIntervalMs": each} for each in INTERVALS),
]


@pytest.mark.parametrize("members", FAULTY, ids=str)
def test_a_handle_or_a_state_that_breaks_the_protocol_is_none(members: dict[str, Any]) -> None:
    with pytest.raises(ToolResultInvalid):
        task(**members)
    with pytest.raises(ToolResultInvalid):
        task().observe(state("working") | members)


@pytest.mark.parametrize("member", ["taskId", "status"])
def test_a_handle_without_its_id_or_status_is_none(member: str) -> None:
    faulty = handle()
    del faulty[member]
    with pytest.raises(ToolResultInvalid):
        Task(faulty, "p").begun(faulty)


@pytest.mark.parametrize("members", [{"taskId": "another"}, {"resultType": "input_required"}], ids=str)
def test_a_state_of_another_task_or_type_is_none(members: dict[str, Any]) -> None:
    with pytest.raises(ToolResultInvalid):
        task().observe(state("working", **members))


@pytest.mark.parametrize("status", list(TaskStatus))
def test_only_a_terminal_status_of_a_state_is_the_end(status: TaskStatus) -> None:
    begun = task(status=str(status))
    assert not begun.is_over
    assert begun.observe(state(status)) is status
    assert begun.is_over is (status in {"completed", "failed", "cancelled"})


def test_what_is_not_used_is_not_judged() -> None:
    assert task(createdAt=None, ttlMs="for ever", statusMessage=7).id == TASK


def test_each_key_is_returned_once() -> None:
    asking = task()
    one, two = form("1"), form("2")
    assert asking.fresh_requests(wants(a=one)) == {"a": one}
    assert asking.fresh_requests(wants(a=form("changed"), b=two)) == {"b": two}
    assert asking.fresh_requests(wants(b=two)) == {}
    assert asking.fresh_requests(wants()) == {}


@pytest.mark.parametrize("requests", [None, [], "a"], ids=str)
def test_input_required_without_requests_breaks_the_protocol(requests: Any) -> None:
    with pytest.raises(ToolResultInvalid):
        task().fresh_requests(state("input_required", inputRequests=requests))


@pytest.mark.parametrize("result", [None, [], {"resultType": "task"}, {"resultType": "input_required"}])
def test_a_completed_task_has_one_complete_result(result: Any) -> None:
    assert task().result(completed()) == DONE
    with pytest.raises(ToolResultInvalid):
        task().result(state("completed", result=result))


def test_a_null_result_type_counts_as_absent() -> None:
    untyped = {"content": [], "resultType": None}
    assert task().observe(state("working", resultType=None)) is TaskStatus.WORKING
    assert task().result(state("completed", result=untyped)) == untyped


def test_a_failed_task_has_a_json_rpc_error() -> None:
    assert task().error(failed(data={"k": 1})) == RemoteError(-32603, "no", {"k": 1})
    for faulty in (failed(code="1"), failed(code=True), failed(message=None), state("failed", error=None)):
        with pytest.raises(ToolResultInvalid):
            task().error(faulty)


def test_a_poll_that_nobody_answered_is_sent_again_ever_later_and_not_for_ever() -> None:
    silent = task()
    waits = [silent.missed(was_sent=True) for _ in range(MISSES_MAX)]
    assert [wait.seconds for wait in waits if wait] == [1, 2, 4, 8, *[16] * 6]
    assert all(wait and wait.then == GET for wait in waits)
    assert silent.missed(was_sent=True) is None
    silent.poll()
    assert silent.missed(was_sent=False) == Wait(1.0, GET)
    assert task(pollIntervalMs=5000).missed(was_sent=True) == Wait(5.0, GET)


@pytest.mark.parametrize("was_sent", [True, False])
def test_an_update_is_sent_again_only_where_it_never_left(*, was_sent: bool) -> None:
    asked = task()
    required = input_required(
        {"inputRequests": asked.fresh_requests(wants(a=form()))}, operation="op", server="p", tool="t"
    )
    update = asked.update(required, [fills("i", env="prod")])
    responses: JsonObject = {"a": {"action": "accept", "content": {"env": "prod"}}}
    assert update == Send("tasks/update", {"taskId": TASK, "inputResponses": responses})
    assert asked.is_updating
    assert asked.missed(was_sent=was_sent) == Wait(1.0, GET if was_sent else update)
    assert asked.is_updating is not was_sent
    asked.poll()
    assert not asked.is_updating
