"""The daemon of a soak, its lives, its workspaces, and what is compared with the reference. SPEC §lifecycle, §state."""

import json
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio
import httpx2

from tests.soak.model import Entry, Workspace, canonical
from tests.soak.peers import Peers
from tests.support.daemon import Daemon

GONE = (httpx2.TransportError, httpx2.StreamError)
"""What a client meets where the daemon ended under it."""


@dataclass
class World:
    """All that the actors of a soak share."""

    daemon: Daemon
    peers: Peers
    rng: Random
    workspaces: list[Workspace]
    life: int = 0
    """The number of the daemon's life."""
    counts: Counter[str] = field(default_factory=Counter[str])
    """What happened, for the figures."""
    said: dict[str, str] = field(default_factory=dict[str, str])
    """How each call ended, by its text: ``ok``, ``rejected``, or the ``outcome`` of its Problem."""
    is_over: bool = False
    is_up: anyio.Event = field(default_factory=anyio.Event)
    _locks: dict[str, anyio.Lock] = field(default_factory=dict[str, anyio.Lock])

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[Workspace]:
        """Give a workspace that nobody else uses meanwhile, while the daemon is up."""
        workspace = self.rng.choice(self.workspaces)
        async with self._locks.setdefault(workspace.name, anyio.Lock()):
            await self.is_up.wait()
            if workspace.life != self.life:
                workspace.life, workspace.is_pending = self.life, False
                workspace.questions.clear()
            yield workspace

    async def next_life(self, life: int) -> None:
        """Return once the daemon has begun a later life than this one."""
        with anyio.fail_after(60):
            while self.life == life or not self.is_up.is_set():
                await anyio.sleep(0.01)

    def text(self) -> str:
        """Return a text for a call that no other call has."""
        self.counts["calls"] += 1
        return f"call-{self.counts['calls']}"

    def rows(self) -> dict[str, dict[str, Entry]]:
        """Return what is durable, by workspace."""
        found: dict[str, dict[str, Entry]] = {}
        file = f"file:{self.daemon.home / 'plurnk.db'}?mode=ro"
        with closing(sqlite3.connect(file, uri=True)) as connection:
            statement = "SELECT workspace, name, definition FROM server_attachments"
            for workspace, name, definition in connection.execute(statement):
                entry = None if definition is None else canonical(json.loads(definition))
                found.setdefault(workspace, {})[name] = entry
        return found

    def require_database(self) -> None:
        """The database equals the model.

        Raises:
            AssertionError: it does not.
        """
        expected = {each.name: each.entries for each in self.workspaces if each.entries}
        assert self.rows() == expected

    def require_calls(self) -> None:
        """Each call was carried out as often as its end says, and never twice.

        Raises:
            AssertionError: some were not.
        """
        carried_out = self.peers.carried_out()
        wrong: list[Any] = []
        for text, end in self.said.items():
            count = carried_out.pop(text, 0)
            allowed = {"ok": {1}, "executed": {1}, "rejected": {0}, "not-sent": {0}}.get(end, {0, 1})
            if count not in allowed:
                wrong.append((text, end, count))
        assert not wrong, wrong
        assert not carried_out, f"carried out, and nobody asked for it: {carried_out}"


def new_workspaces(count: int) -> list[Workspace]:
    """Return workspaces that nothing is known of."""
    return [Workspace(f"soak-{number}") for number in range(count)]


def log_of(directory: Path) -> str:
    """Return the last lines of the daemon's log."""
    file = directory / "daemon.log"
    return "\n".join(file.read_text(errors="replace").splitlines()[-40:]) if file.exists() else ""
