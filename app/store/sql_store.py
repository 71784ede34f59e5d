"""The store as the middle of the house sees it: ``ports.Store`` over one SQLite file. SPEC §state."""

import sqlite3
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio.to_thread

from app.core.attachments import AttachmentRecord
from app.core.audit import AuditRow
from app.store import attachments, audit
from app.store.engine import Database, Waits
from app.store.migrate import bring_to_head
from app.store.refusal import database_path


def utc_now() -> datetime:
    """Return the present instant in UTC."""
    return datetime.now(UTC)


class SqlStore:
    """What survives a restart; every method is one transaction."""

    def __init__(self, database: Database, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._clock = clock
        self._opened_at, self._opened = clock(), time.monotonic()

    async def load(self, workspace: str) -> Mapping[str, AttachmentRecord]:
        """Return the workspace's durable map.

        Raises:
            StoreUnavailable: the database could not be read.
        """
        return await self._database.read(lambda connection: attachments.load(connection, workspace))

    async def apply(
        self, workspace: str, name: str, record: AttachmentRecord | None, row: AuditRow | None = None
    ) -> None:
        """Write one entry, or drop it where ``record`` is None, and the audit's row, in one transaction.

        Raises:
            StoreUnavailable: nothing was written.
        """
        at = self._clock()

        def work(connection: sqlite3.Connection) -> None:
            attachments.apply(connection, workspace, name, record=record, at=at)
            if row is not None:
                self._append(connection, row)

        await self._database.write(work)

    async def workspaces(self) -> list[str]:
        """Return the names of the workspaces with at least one row, sorted.

        Raises:
            StoreUnavailable: the database could not be read.
        """
        return await self._database.read(attachments.workspaces)

    async def record(self, row: AuditRow) -> None:
        """Append one row to the audit table and forget what is older than 90 days, whoever set the clock meanwhile.

        Raises:
            StoreUnavailable: nothing was written.
        """
        await self._database.write(lambda connection: self._append(connection, row))

    def _append(self, connection: sqlite3.Connection, row: AuditRow) -> None:
        audit.append(connection, row, now=min(row.at, self._unset_now()))

    def _unset_now(self) -> datetime:
        """Return the present instant as if nobody had set the clock since the store was opened.

        A clock that is set a year forward by mistake must not cost the whole table.
        """
        return self._opened_at + timedelta(seconds=time.monotonic() - self._opened)

    async def audit_rows(self, *, limit: int = 100, workspace: str | None = None) -> list[AuditRow]:
        """Return at most ``limit`` audit rows, the newest first, of one workspace or of all.

        Raises:
            StoreUnavailable: the database could not be read.
        """
        return await self._database.read(
            lambda connection: audit.rows(connection, limit=limit, workspace=workspace)
        )


@asynccontextmanager
async def open_store(
    location: str | Path, *, clock: Callable[[], datetime] = utc_now, waits: Waits | None = None
) -> AsyncGenerator[SqlStore]:
    """Open the database at a path or a ``PLURNK_DATABASE_URL``, migrated; closed however the block ends.

    Raises:
        StoreRefused: the database is not ours, damaged, newer than this release or out of reach, and was not
        touched.
    """
    path = database_path(location)
    waits = waits or Waits()
    await anyio.to_thread.run_sync(bring_to_head, path, waits.busy)
    database = Database(path, waits)
    try:
        yield SqlStore(database, clock)
    finally:
        await database.close()
