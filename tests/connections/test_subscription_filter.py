"""subscription_filter.py: what is asked, what is granted, what a server offers."""

from typing import Any

import pytest
from mcp_types import SubscriptionFilter

from app.connections.subscription_filter import (
    LIST_FLAGS,
    Filter,
    offered_lists,
    offers_resource_updates,
    read_filter,
)

pytestmark = pytest.mark.spec("watch")

EVERYTHING = Filter(frozenset(LIST_FLAGS), frozenset({"b:", "a:"}), frozenset({"t2", "t1"}))


def test_a_filter_is_the_member_of_the_request_and_back() -> None:
    document = EVERYTHING.document()
    assert document == {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["a:", "b:"],
        "taskIds": ["t1", "t2"],
    }
    assert read_filter(document) == EVERYTHING
    official = SubscriptionFilter.model_validate(document)
    assert official.resource_subscriptions == ["a:", "b:"]
    assert (official.tools_list_changed, official.prompts_list_changed) == (True, True)


def test_what_is_not_asked_for_is_absent_and_nothing_is_false() -> None:
    assert Filter().document() == {}
    assert not Filter()
    assert Filter(lists=frozenset({"tools"})).document() == {"toolsListChanged": True}
    for one in (
        Filter(frozenset({"tools"})),
        Filter(resources=frozenset({""})),
        Filter(tasks=frozenset({""})),
    ):
        assert one


def test_both_is_what_stands_in_both() -> None:
    granted = Filter(frozenset({"tools"}), frozenset({"a:", "c:"}), frozenset({"t9"}))
    assert EVERYTHING & granted == Filter(frozenset({"tools"}), frozenset({"a:"}))


@pytest.mark.parametrize(
    "document, filter_",
    [
        (None, None),
        ([], None),
        ("tools", None),
        ({}, Filter()),
        ({"toolsListChanged": 1, "promptsListChanged": "true", "resourcesListChanged": None}, Filter()),
        ({"resourceSubscriptions": "a:", "taskIds": {"t": 1}}, Filter()),
        ({"resourceSubscriptions": ["a:", 7, None, ["b:"]]}, Filter(resources=frozenset({"a:"}))),
        ({"toolsListChanged": True, "loggingChanged": True}, Filter(frozenset({"tools"}))),
    ],
)
def test_what_is_malformed_in_an_acknowledgement_grants_nothing(
    document: Any, filter_: Filter | None
) -> None:
    assert read_filter(document) == filter_


@pytest.mark.parametrize(
    "capabilities, lists, is_subscribable",
    [
        ({}, set[str](), False),
        ({"tools": {}, "prompts": {"listChanged": False}, "resources": None}, set[str](), False),
        ({"tools": {"listChanged": True}, "resources": {"subscribe": True}}, {"tools"}, True),
        ({"tools": {"listChanged": 1}, "resources": {"subscribe": "yes"}}, set[str](), False),
        (
            {"tools": True, "prompts": {"listChanged": True}, "logging": {"listChanged": True}},
            {"prompts"},
            False,
        ),
    ],
)
def test_only_what_a_server_offers_is_wanted_of_it(
    capabilities: dict[str, Any], lists: set[str], is_subscribable: bool
) -> None:
    assert offered_lists(capabilities) == lists
    assert offers_resource_updates(capabilities) is is_subscribable
