"""Candidates that are being prepared, by server name, so that detach can cancel them. SPEC §lifecycle."""

from collections.abc import Generator
from contextlib import contextmanager

import anyio

from app.core.problems import ServerChanged


class Preparations:
    """The running preparations of one workspace."""

    def __init__(self) -> None:
        self._running: dict[str, set[anyio.CancelScope]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._running

    def __len__(self) -> int:
        return sum(len(scopes) for scopes in self._running.values())

    @contextmanager
    def running(self, name: str) -> Generator[None]:
        """Mark the block as a preparation of this server.

        Raises:
            ServerChanged: somebody called ``cancel`` meanwhile; the block was cancelled.
        """
        scope = anyio.CancelScope()
        self._running.setdefault(name, set()).add(scope)
        try:
            with scope:
                yield
        finally:
            scopes = self._running[name]
            scopes.discard(scope)
            if not scopes:
                del self._running[name]
        if scope.cancelled_caught:
            raise ServerChanged(name)

    def cancel(self, name: str) -> bool:
        """Cancel every preparation of this server; return whether there was one."""
        scopes = tuple(self._running.get(name, ()))
        for scope in scopes:
            scope.cancel()
        return bool(scopes)
