"""What a subscription asks for, what a server grants of it, and what it then tells. SPEC §watch.

Values only, without any I/O. MCP 2026-07-28 basic/patterns/subscriptions; ``taskIds`` is the Tasks extension's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from app.core.json_value import Json, JsonObject

LIST_FLAGS: Final = MappingProxyType(
    {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
)
"""The member of the filter that asks for the list changes of each server capability."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which notifications are wanted, or granted."""

    lists: frozenset[str] = frozenset()
    """Server capabilities whose lists are watched: keys of ``LIST_FLAGS``."""
    resources: frozenset[str] = frozenset()
    """Resource URIs, to the letter."""
    tasks: frozenset[str] = frozenset()
    """Task ids."""

    def __bool__(self) -> bool:
        """Return whether it holds anything."""
        return bool(self.lists or self.resources or self.tasks)

    def __and__(self, other: "Filter") -> "Filter":
        """Return what both hold."""
        return Filter(self.lists & other.lists, self.resources & other.resources, self.tasks & other.tasks)

    def document(self) -> JsonObject:
        """Return the ``notifications`` member of a ``subscriptions/listen`` request."""
        document: JsonObject = {flag: True for name, flag in LIST_FLAGS.items() if name in self.lists}
        if self.resources:
            document["resourceSubscriptions"] = list[Json](sorted(self.resources))
        if self.tasks:
            document["taskIds"] = list[Json](sorted(self.tasks))
        return document


def read_filter(document: Json) -> Filter | None:
    """Return the filter of an acknowledgement, or None where it has none; members that are malformed grant nothing."""
    if not isinstance(document, dict):
        return None
    return Filter(
        frozenset(name for name, flag in LIST_FLAGS.items() if document.get(flag) is True),
        _texts(document.get("resourceSubscriptions")),
        _texts(document.get("taskIds")),
    )


def offered_lists(capabilities: JsonObject) -> frozenset[str]:
    """Return the capabilities whose list changes the server offers to tell."""
    return frozenset(name for name in LIST_FLAGS if _offers(capabilities, name, "listChanged"))


def offers_resource_updates(capabilities: JsonObject) -> bool:
    """Return whether the server offers to tell of changes of single resources."""
    return _offers(capabilities, "resources", "subscribe")


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """The subscription stands; ``granted`` is what the server will tell, never more than was asked."""

    granted: Filter


@dataclass(frozen=True, slots=True)
class ListChanged:
    """The lists of one server capability changed."""

    capability: str


@dataclass(frozen=True, slots=True)
class ResourceUpdated:
    """A resource changed; its URI may be that of a part of what was subscribed to."""

    uri: str


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A watched task moved on; ``params`` is the notification's, with the task in it."""

    task_id: str
    params: JsonObject


News: TypeAlias = Acknowledged | ListChanged | ResourceUpdated | TaskChanged
OnNews: TypeAlias = Callable[[News], None]
"""Is called without awaiting, in the order in which the server told; ``Acknowledged`` is the first and comes once."""


def _offers(capabilities: JsonObject, capability: str, member: str) -> bool:
    offer = capabilities.get(capability)
    return isinstance(offer, dict) and offer.get(member) is True


def _texts(value: Json) -> frozenset[str]:
    return (
        frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()
    )
