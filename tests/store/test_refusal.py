"""Which database a URL names. SPEC §state, §settings."""

from pathlib import Path

import pytest

from app.store.refusal import StoreRefused, database_path, refuse


@pytest.mark.spec("state")
@pytest.mark.parametrize(
    "location, expected",
    [
        ("sqlite+aiosqlite:////var/lib/plurnk.db", Path("/var/lib/plurnk.db")),
        ("sqlite:////var/lib/plurnk.db", Path("/var/lib/plurnk.db")),
        ("sqlite+aiosqlite:////odd%25/a%20b.db", Path("/odd%/a b.db")),
        ("sqlite+aiosqlite:///here.db", Path.cwd() / "here.db"),
        ("/odd%25/a b.db", Path("/odd%25/a b.db")),
        ("here.db", Path.cwd() / "here.db"),
        (Path("here.db"), Path.cwd() / "here.db"),
        (Path("/there.db"), Path("/there.db")),
    ],
)
def test_a_path_or_an_sqlite_url_names_one_file(location: str | Path, expected: Path) -> None:
    assert database_path(location) == expected


@pytest.mark.spec("settings")
@pytest.mark.parametrize(
    "url",
    [
        "",
        ":memory:",
        "file:x?mode=memory",
        "postgresql+asyncpg://me:canary-pw@db/plurnk",
        "sqlite+aiosqlite://",
        "sqlite+aiosqlite:///:memory:",
        "sqlite+aiosqlite:///file:x?mode=memory&uri=true",
        "sqlite+aiosqlite:///file:x",
        "sqlite+aiosqlite:////x.db?cache=shared",
        "sqlite+aiosqlite://me:canary-pw@/x.db",
        "sqlite+pysqlcipher:////x.db",
        "nonsense://///:::",
        "sqlite+aiosqlite://host:canary-port/x.db",
    ],
)
def test_any_other_url_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(StoreRefused) as refused:
        database_path(url)
    assert "canary" not in str(refused.value)
    assert "PLURNK_DATABASE_URL" in str(refused.value)


def test_a_refusal_names_the_file_and_says_what_to_do() -> None:
    sentence = str(refuse(Path("/x.db"), "is damaged", "Restore a backup."))
    assert sentence == "The database /x.db is damaged; it was left untouched. Restore a backup."
