"""Two connections to one SQLite file: one writes, one reads, each taken in turn. SPEC §state.

Why two and no larger pool: SQLite has one writer at a time anyway, so writers queue here, in order, instead
of in its busy handler, which is unfair and sleeps. A reader never waits for a writer in WAL mode, so reads
have a connection of their own, which cannot write. Each connection is one thread; two threads are all the
store ever has.

Waiting is bounded (``Waits``): for one's turn, then for a lock that another process holds, so a write ends
within the sum of the two. Once a write has its turn it is shielded and ends on its own; a cancelled
caller therefore meets either the whole write or nothing. Cancelling the task natively, past the shield, costs
the connection: the pool throws it away with its transaction, unless the commit was already under way.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
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


T = TypeVar("T")


class Database:
    """An open database; ``close`` it."""

    def __init__(self, path: Path, waits: Waits | None = None) -> None:
        self._path = path
        self._waits = waits or Waits()
        self._writer = _engine(path, begin="BEGIN IMMEDIATE", pragmas=PRAGMAS, busy=self._waits.busy)
        self._reader = _engine(
            path, begin=None, pragmas=(*PRAGMAS, "PRAGMA query_only=ON"), busy=self._waits.busy
        )
        self._file = _identity(path)
        self._writing = anyio.Lock()
        self._reading = anyio.Lock()
        self._is_closed = False

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` returns once its transaction is durable.

        Raises:
            StoreUnavailable: nothing was written.
        """
        async with self._turn(self._writing, self._waits.write_turn):
            self._require_in_place()
            with anyio.CancelScope(shield=True):
                return await _transaction(self._writer, work)
        raise AssertionError("a shield swallows nothing")

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` reads; one statement sees one state of the database, and ``work`` makes one.

        Raises:
            StoreUnavailable: it could not be read.
        """
        async with self._turn(self._reading, self._waits.read_turn):
            return await _transaction(self._reader, work)

    async def close(self) -> None:
        """Close both connections once the transactions under way have ended; those that wait are refused."""
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            async with self._writing, self._reading:
                await self._writer.dispose()
                await self._reader.dispose()

    def _require_in_place(self) -> None:
        """Raise where the file was removed or replaced: SQLite would go on writing into the lost one."""
        if _identity(self._path) != self._file:
            raise StoreUnavailable("its file was moved or replaced; restart the daemon")

    @asynccontextmanager
    async def _turn(self, lock: anyio.Lock, wait: timedelta) -> AsyncGenerator[None]:
        """Hold the lock inside the block.

        Raises:
            StoreUnavailable: the turn did not come in time, or the database is closed.
        """
        with anyio.move_on_after(wait.total_seconds()) as waiting:
            await lock.acquire()
        if waiting.cancelled_caught:
            raise StoreUnavailable("what came before takes too long")
        try:
            if self._is_closed:
                raise StoreUnavailable("it is closed")
            yield
        finally:
            lock.release()


async def _transaction(engine: AsyncEngine, work: Callable[[Connection], T]) -> T:
    """Return what ``work`` returns after the commit; a failure has rolled everything back."""
    with unavailable():
        async with engine.connect() as connection:
            try:
                async with connection.begin():
                    return await connection.run_sync(work)
            except DBAPIError as error:
                # A connection that met a full disk or a lost file may stay broken: the next one opens afresh.
                if not is_busy(error) and not connection.closed:
                    await connection.invalidate()
                raise


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


def _begin(statement: str, connection: Connection) -> None:
    connection.exec_driver_sql(statement)


def _engine(path: Path, *, begin: str | None, pragmas: tuple[str, ...], busy: timedelta) -> AsyncEngine:
    """Return an engine of one connection whose transactions start with ``begin``, or are none.

    ``mode=rw``: a file that vanished is an error instead of a new, empty database. ``isolation_level=None``
    keeps the driver from starting transactions of its own, which would be deferred ones: those meet "database
    is locked" at their first write at once, whatever the busy timeout.
    """
    engine = create_async_engine(
        URL.create(
            "sqlite+aiosqlite", database=f"file:{quote(bytes(path))}", query={"mode": "rw", "uri": "true"}
        ),
        poolclass=AsyncAdaptedQueuePool,
        pool_size=1,
        max_overflow=0,
        hide_parameters=True,
        connect_args={"isolation_level": None, "timeout": busy.total_seconds()},
    )

    def on_connect(driver_connection: Any, _record: Any) -> None:
        cursor = driver_connection.cursor()
        for pragma in pragmas:
            cursor.execute(pragma)
        cursor.close()

    event.listen(engine.sync_engine, "connect", on_connect)
    if begin is not None:
        event.listen(engine.sync_engine, "begin", partial(_begin, begin))
    return engine
