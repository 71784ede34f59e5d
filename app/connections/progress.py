"""Which progress notifications of a request reach its caller. SPEC §calls.

Pure. One gate is one request: foreign and malformed progress and progress that does not increase stay
outside; late progress has no gate any more. MCP 2026-07-28 basic/patterns/progress.
"""

import math
from typing import Final, TypeGuard

from app.connections.transport import Diagnostics, OnProgress
from app.connections.wire import Notification
from app.core.answers import Progress
from app.core.json_value import Json

METHOD: Final = "notifications/progress"
MESSAGE_MAX: Final = 1024
"""Characters of a progress message that are passed on."""


class ProgressGate:
    """Passes the accepted progress of one request on, and counts the rest."""

    __slots__ = ("_diagnostics", "_last", "_on_progress", "_token")

    def __init__(self, token: int, on_progress: OnProgress | None, diagnostics: Diagnostics) -> None:
        self._token = token
        self._on_progress = on_progress
        self._diagnostics = diagnostics
        self._last = -math.inf

    def take(self, notification: Notification) -> None:
        """Pass a notification on where it is accepted progress of this request; else count it as ignored."""
        if notification.method != METHOD:
            self._diagnostics.ignored_notifications += 1
            return
        progress = self._accepted(notification)
        if progress is None or self._on_progress is None:
            self._diagnostics.ignored_progress += 1
            return
        self._on_progress(progress)

    def _accepted(self, notification: Notification) -> Progress | None:
        """Return the progress where it is ours, well-formed and larger than the last."""
        progress = read(notification)
        token = notification.params.get("progressToken")
        if progress is None or not is_same_token(token, self._token) or progress.progress <= self._last:
            return None
        self._last = progress.progress
        return progress


def is_same_token(token: Json, ours: int) -> bool:
    """Return whether a peer's token is ours: an integer, neither text nor a float nor a boolean."""
    return type(token) is int and token == ours


def read(notification: Notification) -> Progress | None:
    """Return what a progress notification says, its message cut short; None where it is malformed."""
    params = notification.params
    progress, total, message = params.get("progress"), params.get("total"), params.get("message")
    if not _is_number(progress) or not (total is None or _is_number(total)):
        return None
    if message is not None and not isinstance(message, str):
        return None
    return Progress(
        float(progress),
        None if total is None else float(total),
        None if message is None else message[:MESSAGE_MAX],
    )


def _is_number(value: Json) -> TypeGuard[int | float]:
    """Return whether the value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
