"""Looking at a database file from outside, and processes that die while they work on one."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any


def contents(path: Path) -> dict[str, bytes]:
    """Return every file beside the database, by name."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}


def query(path: Path, sql: str) -> list[Any]:
    """Return the rows that another process would see."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(sql).fetchall()


def insert(connection: sqlite3.Connection, name: str) -> None:
    """Add two rows, so that half a transaction would show."""
    for half in ("a", "b"):
        connection.execute(
            "INSERT INTO server_attachments VALUES (?, ?, 'detached', NULL, '2026-11-30T00:00:00.000000Z')",
            (half, name),
        )


def names(path: Path) -> list[str]:
    """Return what another process sees, each name twice."""
    return [name for (name,) in query(path, "SELECT name FROM server_attachments ORDER BY name")]


def pragma(connection: sqlite3.Connection, name: str) -> object:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def user_version(connection: sqlite3.Connection) -> object:
    return pragma(connection, "user_version")


def workers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if "_connection_worker_thread" in thread.name}


def in_child(work: Callable[[], None], *, die_at_statement: int | None = None) -> int:
    """Return how a forked process that did the work ended: exit status, or minus the signal.

    With ``die_at_statement`` it kills itself right before the n-th SQL statement of all its connections.
    """
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        if die_at_statement is not None:
            sqlite3.connect = partial(sqlite3.connect, factory=_killer(die_at_statement))
        work()
        status = 0
    finally:
        os._exit(status)


def _killer(statement: int) -> type[sqlite3.Connection]:
    """Return a connection class that kills the process at the n-th statement of all its connections."""
    seen = 0

    def count(_sql: str) -> None:
        nonlocal seen
        seen += 1
        if seen == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    class Traced(sqlite3.Connection):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self.set_trace_callback(count)

    return Traced


HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute(f"PRAGMA locking_mode={sys.argv[2]}")
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
"""


@contextmanager
def held(path: Path, *, is_exclusive: bool = False) -> Generator[Callable[[], None]]:
    """Hold the write lock in another process until the given function is called or the block ends.

    An exclusive one, which nobody gets who has the database open, keeps readers out too.
    """
    command = [sys.executable, "-c", HOLD, str(path), "EXCLUSIVE" if is_exclusive else "NORMAL"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process.stdin.close
        process.stdin.close()
