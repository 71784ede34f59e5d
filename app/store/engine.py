"""Two connections to one SQLite file: one writes, one reads, each taken in turn. SPEC §state.

Why two and no larger pool: SQLite has one writer at a time anyway, so writers queue here, in order, instead
of in its busy handler, which is unfair and sleeps. A reader never waits for a writer in WAL mode, so reads
have a connection of their own, which cannot write. Each connection is one thread; two threads are all the
store ever has. SQLAlchemy opens and closes them, and its tables make the statements; a transaction is one call on the
thread, from its beginning to its commit, as each step of its own would be a way there and back through the loop.

Waiting is bounded (``Waits``): for one's turn, then for a lock that another process holds, so a write ends
within the sum of the two. A lock that one waited for in vain is waited for by nobody else: those behind, whose waits
would add up, try once each until one of them succeeds. Once a write has its turn it ends on its own, in the thread; a
cancelled caller therefore meets either the whole write or nothing, and who has to know which shields itself. The turn
ends with the transaction, not with the caller.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiosqlite
import anyio
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

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


class DriverConnection(aiosqlite.Connection):
    """A connection whose thread does a whole piece of work at one call."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connect, iter_chunk_size=64)
        self._thread.daemon = True  # A store that nobody closed does not keep the process.

    def do(self, work: Callable[[sqlite3.Connection], T]) -> "asyncio.Future[T]":
        """Have the work done by the thread, after what it was given before; no cancellation stops it."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._tx.put_nowait((future, partial(work, self._conn)))
        return future


class Side:
    """One of the two connections, which those who come take in turn."""

    def __init__(self, path: Path, *, is_writer: bool, busy: timedelta, turn: timedelta) -> None:
        self._path = path
        self._is_writer = is_writer
        self._file = _identity(path)
        self._turn = anyio.Semaphore(1)
        self._turn_s = turn.total_seconds()
        self._engine = create_async_engine(
            "sqlite+aiosqlite://", async_creator=self._driver_connection, poolclass=NullPool
        )
        self._connection: AsyncConnection | None = None
        self._driver: DriverConnection | None = None
        self._is_broken = False
        """Whether the connection failed in another way than by a lock: the next transaction opens afresh."""
        self._is_closed = False
        self._busy_ms = busy // timedelta(milliseconds=1)
        self._told_ms = 0
        """How long SQLite was told to wait for a lock."""
        self._is_locked_out = False
        """Whether another process's lock was waited for in vain, and nothing has succeeded since."""

    async def take_turn(self) -> None:
        """Have the connection for oneself until the ``transaction`` that follows is over.

        Raises:
            StoreUnavailable: the turn did not come in time.
        """
        try:
            self._turn.acquire_nowait()
        except anyio.WouldBlock:
            with anyio.move_on_after(self._turn_s) as waiting:
                await self._turn.acquire()
            if waiting.cancelled_caught:
                raise StoreUnavailable("what came before takes too long") from None

    async def transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``work`` returns, in one's turn, after the commit; a failure has rolled everything back.

        Raises:
            StoreUnavailable: the database is closed or fails.
        """
        with unavailable():
            try:
                driver = await self._opened()
                done = driver.do(partial(self._transacted, work))
            except BaseException:
                self._turn.release()
                raise
            done.add_done_callback(self._turn_over)
            # Whoever waits may be cancelled; the turn is over when the thread says so.
            return await asyncio.shield(done)
        raise AssertionError("the block swallows nothing")

    def refuse(self) -> None:
        """Begin no transaction any more."""
        self._is_closed = True

    async def close(self) -> None:
        """Close the connection once the transaction under way has ended."""
        async with self._turn:
            await self._discard()

    def _turn_over(self, _done: object) -> None:
        self._turn.release()

    async def _opened(self) -> DriverConnection:
        """Return the connection, opened where there is none that works.

        Raises:
            StoreUnavailable: the database is closed, or its file was removed or replaced under a writer.
        """
        if self._is_closed:
            raise StoreUnavailable("it is closed")
        if self._is_writer and _identity(self._path) != self._file:
            # SQLite would go on writing into the lost one.
            raise StoreUnavailable("its file was moved or replaced; restart the daemon")
        if self._driver is not None and not self._is_broken:
            return self._driver
        with anyio.CancelScope(shield=True):
            await self._discard()
            return await self._open()
        raise AssertionError("a shield swallows nothing")

    async def _open(self) -> DriverConnection:
        self._is_broken = True
        try:
            self._connection = await self._engine.connect()
        except DBAPIError as error:
            self._is_locked_out = self._is_locked_out or is_busy(error)
            raise
        driver = (await self._connection.get_raw_connection()).driver_connection
        assert isinstance(driver, DriverConnection)  # noqa: S101 our creator made it
        self._driver, self._is_broken = driver, False
        return driver

    async def _discard(self) -> None:
        """Let there be no connection."""
        if self._connection is not None:
            await self._connection.invalidate()
            await self._connection.close()
        self._connection, self._driver, self._is_broken = None, None, False

    async def _driver_connection(self) -> DriverConnection:
        """Return a new connection.

        ``mode=rw``: a file that vanished is an error instead of a new, empty database. ``isolation_level=None``
        keeps the driver from starting transactions of its own, which would be deferred ones: those meet "database
        is locked" at their first write at once, whatever the busy timeout.
        """
        uri = file_uri(self._path, "mode=rw")
        connection = DriverConnection(lambda: sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0))
        await connection
        try:
            await connection.do(self._set_up)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await connection.close()
            raise
        return connection

    # What the thread of the connection does, one thing at a time

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """Set what SQLite has for each connection; already that may meet a lock."""
        self._be_patient(connection)
        for pragma in PRAGMAS if self._is_writer else (*PRAGMAS, "PRAGMA query_only=ON"):
            connection.execute(pragma)

    def _transacted(self, work: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
        """Return what the work returns, committed; a failure leaves nothing of it."""
        try:
            result = self._committed(work, connection)
        except BaseException as error:
            if isinstance(error, sqlite3.Error) and not is_busy(error):
                # One that met a full disk or a lost file may stay broken.
                self._is_broken = True
                connection.close()
            else:
                self._is_locked_out = self._is_locked_out or isinstance(error, sqlite3.Error)
                connection.rollback()
            raise
        self._is_locked_out = False
        return result

    def _committed(self, work: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
        if self._told_ms != self._patience_ms:
            self._be_patient(connection)
        if not self._is_writer:
            return work(connection)
        connection.execute("BEGIN IMMEDIATE")
        result = work(connection)
        connection.execute("COMMIT")
        return result

    def _be_patient(self, connection: sqlite3.Connection) -> None:
        """Have SQLite wait for a lock as long as one should now."""
        self._told_ms = self._patience_ms
        connection.execute(f"PRAGMA busy_timeout={self._told_ms}")

    @property
    def _patience_ms(self) -> int:
        return 0 if self._is_locked_out else self._busy_ms


class Database:
    """An open database; ``close`` it."""

    def __init__(self, path: Path, waits: Waits | None = None) -> None:
        waits = waits or Waits()
        self._writer = Side(path, is_writer=True, busy=waits.busy, turn=waits.write_turn)
        self._reader = Side(path, is_writer=False, busy=waits.busy, turn=waits.read_turn)

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``work``, which a thread does, returns once its transaction is durable.

        Raises:
            StoreUnavailable: nothing was written.
        """
        await self._writer.take_turn()
        return await self._writer.transaction(work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what ``work`` reads; one statement sees one state of the database, and ``work`` makes one.

        Raises:
            StoreUnavailable: it could not be read.
        """
        await self._reader.take_turn()
        return await self._reader.transaction(work)

    async def close(self) -> None:
        """Close both connections once the transactions under way have ended; those that wait are refused."""
        sides = (self._writer, self._reader)
        for side in sides:
            side.refuse()
        with anyio.CancelScope(shield=True):
            for side in sides:
                await side.close()


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
