"""Real databases in a directory of their own."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from app.store import SqlStore, open_store
from app.store.engine import Database
from app.store.migrate import bring_to_head


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a database file that does not exist, in a path that a URI must quote."""
    directory = tmp_path / "odd %41?#é"
    directory.mkdir()
    return directory / "plurnk.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqlStore]:
    """Open a fresh store."""
    async with open_store(path) as opened:
        yield opened


@pytest.fixture
async def database(path: Path) -> AsyncGenerator[Database]:
    """Open a fresh, migrated database."""
    bring_to_head(path)
    opened = Database(path)
    yield opened
    await opened.close()
