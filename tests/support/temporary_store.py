"""A real database that lasts as long as one test, or one example of a property."""

import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from app.store.sql_store import SqlStore, open_store


@asynccontextmanager
async def temporary_store() -> AsyncGenerator[SqlStore]:
    """Open a new, empty database; it is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="plurnk-test-") as directory:
        async with open_store(Path(directory) / "plurnk.db") as store:
            yield store
