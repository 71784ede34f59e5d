"""Two connections to one SQLite file: one writes, one reads, each taken in turn. SPEC §state.

Why two and no larger pool: SQLite has one writer at a time anyway, so writers queue here, in order, instead
of in its busy handler, which is unfair and sleeps. A reader never waits for a writer in WAL mode, so reads
have a connection of their own, which cannot write. Each connection is one thread; two threads are all the
store ever has.

Waiting is bounded (``Waits``): for one's turn, then for a lock that another process holds, so a write ends
within the sum of the two. A lock that one waited for in vain is waited for by nobody else: those behind, whose waits
would add up, try once each until one of them succeeds. Once a write has its turn it is shielded and ends on its own; a
cancelled caller therefore meets either the whole write or nothing. Cancelling the task natively, past the shield, costs
the connection: the pool throws it away with its transaction, unless the commit was already under way.
"""

import sqlite3
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import anyio
from sqlalchemy import URL, Connection, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from app.core.problems import StoreUnavailable
from app.store.failures import is_busy, unavailable

BUSY = timedelta(seconds=5)
"""How long SQLite waits for a lock that another process holds."""

PRAGMAS = ("PRAGMA synchronous=FULL", "PRAGMA foreign_keys=ON", "PRAGMA trusted_schema=OFF")
"""Of every connection; ``journal_mode=WAL`` is a property of the file and set by ``migrate``."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long who waits before ``StoreUnavailable``."""

    busy: timedelta = BUSY
    """For another process."""
    write_turn: timedelta = timedelta(seconds=5)
    """For the writes before one's own."""
    read_turn: timedelta = timedelta(seconds=30)
    """For the reads before one's own: the workspaces of a whole daemon may be read at once."""


BUSY_MS = "busy_ms"
"""How long SQLite was told to wait, in the ``info`` of a connection."""

T = TypeVar("T")


class Side:
    """One of the two connections, which those who come take in turn."""

    def __init__(self, path: Path, *, begin: str | None, pragmas: tuple[str, ...], busy: timedelta) -> None:
        self.engine = _engine(path)
        self.taken = anyio.Lock()
        self._begin_statement = begin
        self._pragmas = pragmas
        self._busy_ms = busy // timedelta(milliseconds=1)
        self._is_locked_out = False
        """Whether another process's lock was waited for in vain, and nothing has succeeded since."""
        event.listen(self.engine.sync_engine, "connect", self._connected)
        event.listen(self.engine.sync_engine, "begin", self._begin)

    async def transaction(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` returns after the commit; a failure has rolled everything back."""
        with unavailable(), self._noting_a_lock():
            async with self.engine.connect() as connection:
                try:
                    async with connection.begin():
                        return await connection.run_sync(work)
                except DBAPIError as error:
                    # A connection that met a full disk or a lost file may stay broken: the next one opens afresh.
                    if not is_busy(error) and not connection.closed:
                        await connection.invalidate()
                    raise
        raise AssertionError("the blocks swallow nothing")

    @contextmanager
    def _noting_a_lock(self) -> Generator[None]:
        try:
            yield
        except (DBAPIError, sqlite3.Error) as error:
            self._is_locked_out = self._is_locked_out or is_busy(error)
            raise
        self._is_locked_out = False

    @property
    def _patience_ms(self) -> int:
        return 0 if self._is_locked_out else self._busy_ms

    def _connected(self, driver_connection: Any, record: Any) -> None:
        """Set what SQLite has for each connection; already these may meet a lock."""
        record.info[BUSY_MS] = self._patience_ms
        cursor = driver_connection.cursor()
        for pragma in (f"PRAGMA busy_timeout={self._patience_ms}", *self._pragmas):
            cursor.execute(pragma)
        cursor.close()

    def _begin(self, connection: Connection) -> None:
        """Have SQLite wait for a lock or not, and begin."""
        if connection.info[BUSY_MS] != self._patience_ms:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={self._patience_ms}")
            connection.info[BUSY_MS] = self._patience_ms
        if self._begin_statement is not None:
            connection.exec_driver_sql(self._begin_statement)


class Database:
    """An open database; ``close`` it."""

    def __init__(self, path: Path, waits: Waits | None = None) -> None:
        self._path = path
        self._waits = waits or Waits()
        self._writer = Side(path, begin="BEGIN IMMEDIATE", pragmas=PRAGMAS, busy=self._waits.busy)
        self._reader = Side(
            path, begin=None, pragmas=(*PRAGMAS, "PRAGMA query_only=ON"), busy=self._waits.busy
        )
        self._file = _identity(path)
        self._is_closed = False

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` returns once its transaction is durable.

        Raises:
            StoreUnavailable: nothing was written.
        """
        async with self._turn(self._writer, self._waits.write_turn):
            self._require_in_place()
            with anyio.CancelScope(shield=True):
                return await self._writer.transaction(work)
        raise AssertionError("a shield swallows nothing")

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` reads; one statement sees one state of the database, and ``work`` makes one.

        Raises:
            StoreUnavailable: it could not be read.
        """
        async with self._turn(self._reader, self._waits.read_turn):
            return await self._reader.transaction(work)

    async def close(self) -> None:
        """Close both connections once the transactions under way have ended; those that wait are refused."""
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            async with self._writer.taken, self._reader.taken:
                await self._writer.engine.dispose()
                await self._reader.engine.dispose()

    def _require_in_place(self) -> None:
        """Raise where the file was removed or replaced: SQLite would go on writing into the lost one."""
        if _identity(self._path) != self._file:
            raise StoreUnavailable("its file was moved or replaced; restart the daemon")

    @asynccontextmanager
    async def _turn(self, side: Side, wait: timedelta) -> AsyncGenerator[None]:
        """Have the connection for oneself inside the block.

        Raises:
            StoreUnavailable: the turn did not come in time, or the database is closed.
        """
        with anyio.move_on_after(wait.total_seconds()) as waiting:
            await side.taken.acquire()
        if waiting.cancelled_caught:
            raise StoreUnavailable("what came before takes too long")
        try:
            if self._is_closed:
                raise StoreUnavailable("it is closed")
            yield
        finally:
            side.taken.release()


def file_uri(path: Path, options: str) -> str:
    """Return SQLite's URI of the file, every odd character of its path quoted. https://sqlite.org/uri.html."""
    return f"file:{quote(bytes(path))}?{options}"


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what distinguishes the file at the path from any other; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _engine(path: Path) -> AsyncEngine:
    """Return an engine of one connection, whose transactions the caller begins.

    ``mode=rw``: a file that vanished is an error instead of a new, empty database. ``isolation_level=None``
    keeps the driver from starting transactions of its own, which would be deferred ones: those meet "database
    is locked" at their first write at once, whatever the busy timeout.
    """
    return create_async_engine(
        URL.create(
            "sqlite+aiosqlite", database=f"file:{quote(bytes(path))}", query={"mode": "rw", "uri": "true"}
        ),
        poolclass=AsyncAdaptedQueuePool,
        pool_size=1,
        max_overflow=0,
        hide_parameters=True,
        connect_args={"isolation_level": None, "timeout": 0},
    )
