"""All that a refused change must leave as it was: rows, summaries, processes, sockets. SPEC §lifecycle."""

import sqlite3
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import anyio

from tests.support.daemon import Daemon
from tests.support.processes import connections_to, peers_of

PASSING = {"audit", "alembic_version", "sqlite_sequence"}
"""Tables that record what was asked, whatever came of it."""


@dataclass(frozen=True)
class Standing:
    """What can be seen of a workspace and its daemon from outside."""

    rows: dict[str, list[tuple[Any, ...]]]
    servers: dict[str, dict[str, Any]]
    tools: list[dict[str, Any]]
    processes: frozenset[int]
    sockets: int


def stored(daemon: Daemon) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table that holds attachments, read beside the running daemon."""
    connection = sqlite3.connect(f"file:{daemon.home / 'plurnk.db'}?mode=ro", uri=True)
    try:
        names = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return {
            name: sorted(connection.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr)  # noqa: S608 its own name
            for name in names
            if name not in PASSING
        }
    finally:
        connection.close()


async def standing(daemon: Daemon, workspace: str, url: str) -> Standing:
    """Return how things stand now; ``url`` is the HTTP peer whose sockets are counted."""
    port = urlsplit(url).port
    assert port is not None
    return Standing(
        rows=stored(daemon),
        servers=await daemon.servers(workspace),
        tools=(await daemon.act(workspace, "workspace.mcp.tools", schemas=True))["tools"],
        processes=frozenset(peers_of(daemon.pid)),
        sockets=connections_to(daemon.pid, port),
    )


async def until_it_stands(daemon: Daemon, workspace: str, url: str, expected: Standing) -> None:
    """Return once things stand exactly as expected: a candidate may need its close ladder first.

    Raises:
        AssertionError: they still do not after a while; shows the difference.
    """
    with anyio.move_on_after(10):
        while not _stands(await standing(daemon, workspace, url), expected):
            await anyio.sleep(0.05)
    now = await standing(daemon, workspace, url)
    assert now.sockets <= expected.sockets
    assert replace(now, sockets=expected.sockets) == expected


def _stands(now: Standing, expected: Standing) -> bool:
    """Whether all is as expected; the pool may have let go of an idle socket meanwhile."""
    return now.sockets <= expected.sockets and replace(now, sockets=expected.sockets) == expected
