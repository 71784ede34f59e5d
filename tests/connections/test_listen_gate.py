"""listen_gate.py: whose notification it is, the acknowledgement first, the granted subset."""

from typing import Any

import pytest

from app.connections.listen_gate import SUBSCRIPTION_ID, ListenGate, subscription_id
from app.connections.subscription_filter import (
    Acknowledged,
    Filter,
    ListChanged,
    News,
    ResourceUpdated,
    TaskChanged,
)
from app.connections.transport import Diagnostics
from app.connections.wire import Notification
from app.core.answers import AnswerLost

pytestmark = pytest.mark.spec("watch")

ASKED = Filter(frozenset({"tools", "prompts"}), frozenset({"a:"}), frozenset({"t1"}))
ALL: dict[str, Any] = ASKED.document()
CHANGES = {name: f"notifications/{name}/list_changed" for name in ("tools", "prompts", "resources")}


class Stream:
    """A gate for the subscription 7 and what came through it."""

    def __init__(self) -> None:
        self.news: list[News] = []
        self.diagnostics = Diagnostics()
        self.gate = ListenGate(7, ASKED, self.news.append, self.diagnostics)

    def take(self, method: str, identifier: Any = 7, **params: Any) -> None:
        meta = {} if identifier is None else {"_meta": {SUBSCRIPTION_ID: identifier}}
        self.gate.take(Notification(method, {**params, **meta}))

    def acknowledge(self, identifier: Any = 7, **notifications: Any) -> None:
        self.take("notifications/subscriptions/acknowledged", identifier, notifications=notifications or ALL)


def test_everything_that_was_granted_comes_through_in_order() -> None:
    stream = Stream()
    assert not stream.gate.is_acknowledged
    stream.acknowledge()
    assert stream.gate.is_acknowledged
    stream.take(CHANGES["tools"])
    stream.take("notifications/resources/updated", uri="a:part")
    stream.take("notifications/tasks", taskId="t1", status="working")
    stream.take(CHANGES["prompts"])
    task: dict[str, Any] = {"taskId": "t1", "status": "working", "_meta": {SUBSCRIPTION_ID: 7}}
    assert stream.news == [
        Acknowledged(ASKED),
        ListChanged("tools"),
        ResourceUpdated("a:part"),
        TaskChanged("t1", task),
        ListChanged("prompts"),
    ]
    assert stream.diagnostics.ignored_notifications == 0


def test_nothing_before_the_acknowledgement_counts_and_a_second_one_changes_nothing() -> None:
    stream = Stream()
    stream.take(CHANGES["tools"])
    stream.take("notifications/resources/updated", uri="a:")
    stream.acknowledge(toolsListChanged=True)
    stream.acknowledge()
    stream.take(CHANGES["prompts"])
    assert stream.news == [Acknowledged(Filter(frozenset({"tools"})))]
    assert stream.diagnostics.ignored_notifications == 4


@pytest.mark.parametrize("identifier", [None, 8, "7", 7.0, True, [7], {"id": 7}])
def test_another_subscription_is_told_by_value_and_type(identifier: Any) -> None:
    stream = Stream()
    stream.acknowledge(identifier)
    assert not stream.gate.is_acknowledged
    stream.acknowledge()
    stream.take(CHANGES["tools"], identifier)
    assert stream.news == [Acknowledged(ASKED)]
    assert stream.diagnostics.ignored_notifications == 2


def test_the_granted_subset_is_respected_and_more_than_was_asked_is_not_taken() -> None:
    stream = Stream()
    stream.acknowledge(resourcesListChanged=True, promptsListChanged=True, taskIds=["t2"])
    for method in CHANGES.values():
        stream.take(method)
    stream.take("notifications/resources/updated", uri="a:")
    stream.take("notifications/tasks", taskId="t2")
    assert stream.news == [Acknowledged(Filter(frozenset({"prompts"}))), ListChanged("prompts")]


@pytest.mark.parametrize(
    "method, params",
    [
        ("notifications/resources/updated", {}),
        ("notifications/resources/updated", {"uri": 7}),
        ("notifications/tasks", {"taskId": ["t1"]}),
        ("notifications/tasks", {"taskId": "t9"}),
        ("notifications/progress", {"progressToken": 7, "progress": 1}),
        ("notifications/message", {"level": "info", "data": "x"}),
        ("notifications/made/up", {}),
        ("notifications/cancelled", {"requestId": "7"}),
        ("notifications/cancelled", {"requestId": 6}),
        ("notifications/cancelled", {}),
    ],
)
def test_what_is_malformed_or_unknown_is_counted_and_harms_nothing(
    method: str, params: dict[str, Any]
) -> None:
    stream = Stream()
    stream.acknowledge()
    stream.take(method, **params)
    stream.take(CHANGES["tools"])
    assert stream.news == [Acknowledged(ASKED), ListChanged("tools")]
    assert stream.diagnostics.ignored_notifications == 1


@pytest.mark.parametrize("notifications", [None, [], "tools"])
def test_an_acknowledgement_without_a_filter_is_none(notifications: Any) -> None:
    stream = Stream()
    stream.take("notifications/subscriptions/acknowledged", notifications=notifications)
    assert not stream.gate.is_acknowledged


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_the_server_may_end_the_subscription(is_acknowledged: bool) -> None:
    stream = Stream()
    if is_acknowledged:
        stream.acknowledge()
    with pytest.raises(AnswerLost):
        stream.take("notifications/cancelled", None, requestId=7, reason="going down")


def test_the_id_of_a_notification_is_whatever_it_carries() -> None:
    assert subscription_id(Notification("x", {"_meta": {SUBSCRIPTION_ID: "a"}})) == "a"
    assert subscription_id(Notification("x", {"_meta": [SUBSCRIPTION_ID]})) is None
    assert subscription_id(Notification("x", {})) is None
