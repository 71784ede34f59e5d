"""Changes that have not begun to commit, by server name; detach and the end cancel them. SPEC §lifecycle."""

from collections.abc import Generator
from contextlib import contextmanager

from app.concurrency import cancel_scope
from app.core.problem import Problem
from app.core.problems import ServerChanged, ShuttingDown


class Preparation:
    """One change of one server until it begins to commit."""

    def __init__(self, registry: "Preparations", server: str) -> None:
        self._registry = registry
        self.server = server
        self.scope = cancel_scope()
        self.refusal: Problem | None = None
        """Why it was cancelled, where it was."""

    def cancel(self, refusal: Problem) -> None:
        """End it; its author is told why, and the first time counts."""
        self.refusal = self.refusal or refusal
        self.scope.cancel()

    def begin_commit(self) -> None:
        """Be out of everybody's reach from now on.

        Raises:
            Problem: it was cancelled, and whoever did so was told that nothing comes of it.
        """
        if self.refusal is not None:
            raise self.refusal
        self._registry.drop(self)


class Preparations:
    """The running preparations of one workspace."""

    def __init__(self) -> None:
        self._running: dict[str, set[Preparation]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._running

    def __len__(self) -> int:
        return sum(len(preparations) for preparations in self._running.values())

    @contextmanager
    def running(self, name: str) -> Generator[Preparation]:
        """Mark the block as a preparation of this server, until it says that it commits.

        Raises:
            ServerChanged: somebody called ``cancel`` meanwhile; the block was cancelled.
            ShuttingDown: likewise, and ``cancel_all``.
        """
        preparation = Preparation(self, name)
        self._running.setdefault(name, set()).add(preparation)
        try:
            with preparation.scope:
                yield preparation
        finally:
            self.drop(preparation)
        if preparation.scope.cancelled_caught and preparation.refusal is not None:
            raise preparation.refusal

    def drop(self, preparation: Preparation) -> None:
        """Forget the preparation, where it is known."""
        preparations = self._running.get(preparation.server, set())
        preparations.discard(preparation)
        if not preparations:
            self._running.pop(preparation.server, None)

    def cancel(self, name: str) -> bool:
        """Cancel every preparation of this server; return whether there was one."""
        preparations = tuple(self._running.get(name, ()))
        for preparation in preparations:
            preparation.cancel(ServerChanged(name))
        return bool(preparations)

    def cancel_all(self) -> None:
        """Cancel every preparation: the group is over in which what they make would live."""
        for preparation in [each for preparations in self._running.values() for each in preparations]:
            preparation.cancel(ShuttingDown())
