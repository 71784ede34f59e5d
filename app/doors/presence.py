"""Whether the client of a connection is still there, told at once and without a task. SPEC §agui, §calls.

Our HTTP protocol puts it into each request's scope; under another server there is none, and whoever wants to know has
to receive until the client is gone.
"""

from collections.abc import Callable

from app.doors.asgi import Scope

KEY = "plurnk.presence"


class Presence:
    """One client's connection."""

    def __init__(self) -> None:
        self.is_over = False
        self.is_known = False
        """Whether it has shown a token that opens the daemon."""
        self._watchers: dict[Callable[[], None], None] = {}

    def watch(self, on_gone: Callable[[], None]) -> None:
        """Call this, without awaiting, when the client goes; at once where it is gone."""
        if self.is_over:
            on_gone()
        else:
            self._watchers[on_gone] = None

    def forget(self, on_gone: Callable[[], None]) -> None:
        """Do not call it any more."""
        self._watchers.pop(on_gone, None)

    def end(self) -> None:
        """Tell everybody that the client is gone."""
        self.is_over = True
        watchers, self._watchers = self._watchers, {}
        for on_gone in watchers:
            on_gone()


def presence_of(scope: Scope) -> Presence | None:
    """Return the presence of the request's client, where its server tells."""
    return scope.get(KEY)
