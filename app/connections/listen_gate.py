"""Which notifications of one ``subscriptions/listen`` stream count. SPEC §watch.

Pure. One gate is one stream, on either transport: what carries another subscription's id (compared with its type), what
comes before the acknowledgement and what was not granted stay outside. MCP 2026-07-28 basic/patterns/subscriptions.
"""

from typing import Final

from app.connections.progress import is_same_token
from app.connections.subscription_filter import (
    Acknowledged,
    Filter,
    ListChanged,
    News,
    OnNews,
    ResourceUpdated,
    TaskChanged,
    read_filter,
)
from app.connections.transport import Diagnostics
from app.connections.wire import Notification
from app.core.answers import AnswerLost
from app.core.json_value import Json

METHOD: Final = "subscriptions/listen"
CANCELLED: Final = "notifications/cancelled"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_UPDATED: Final = "notifications/resources/updated"
_TASK: Final = "notifications/tasks"


class ListenGate:
    """Passes the news of one stream on, and counts the rest."""

    __slots__ = ("_asked", "_diagnostics", "_granted", "_id", "_on_news")

    def __init__(self, request_id: int, asked: Filter, on_news: OnNews, diagnostics: Diagnostics) -> None:
        self._id = request_id
        self._asked = asked
        self._on_news = on_news
        self._diagnostics = diagnostics
        self._granted: Filter | None = None

    @property
    def is_acknowledged(self) -> bool:
        """Whether the stream stands."""
        return self._granted is not None

    def take(self, notification: Notification) -> None:
        """Pass a notification on where it is news of this stream; else count it as ignored.

        Raises:
            AnswerLost: the server has cancelled the subscription. MCP 2026-07-28 basic/patterns/cancellation.
        """
        if notification.method == CANCELLED and is_same_token(notification.params.get("requestId"), self._id):
            raise AnswerLost("the server ended the subscription")
        news = self._news(notification) if is_same_token(subscription_id(notification), self._id) else None
        if news is None:
            self._diagnostics.ignored_notifications += 1
        else:
            self._on_news(news)

    def _news(self, notification: Notification) -> News | None:
        """Return what the notification says, or None where it says nothing that counts now."""
        params = notification.params
        if self._granted is None:
            granted = (
                read_filter(params.get("notifications")) if notification.method == _ACKNOWLEDGED else None
            )
            if granted is None:
                return None
            self._granted = granted & self._asked
            return Acknowledged(self._granted)
        uri, task_id = params.get("uri"), params.get("taskId")
        match notification.method:
            case "notifications/tools/list_changed" if "tools" in self._granted.lists:
                return ListChanged("tools")
            case "notifications/prompts/list_changed" if "prompts" in self._granted.lists:
                return ListChanged("prompts")
            case "notifications/resources/list_changed" if "resources" in self._granted.lists:
                return ListChanged("resources")
            case method if method == _UPDATED and isinstance(uri, str) and self._granted.resources:
                return ResourceUpdated(uri)
            case method if method == _TASK and isinstance(task_id, str) and task_id in self._granted.tasks:
                return TaskChanged(task_id, params)
            case _:
                return None


def subscription_id(notification: Notification) -> Json:
    """Return the id that the notification carries in its ``_meta``, whatever it is; None where there is none."""
    meta = notification.params.get("_meta")
    return meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
