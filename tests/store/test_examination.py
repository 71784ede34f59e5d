"""Looking at a file without touching it. SPEC §state."""

import os
import re
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.store.engine import file_uri
from app.store.examination import AtRevision, Empty, examine
from app.store.migrate import bring_to_head
from app.store.refusal import StoreRefused
from app.store.schema import HEAD
from tests.support.databases import contents, in_child

ROW = (
    "INSERT INTO server_attachments"
    " VALUES ('w', 's%d', 'attached', '{\"name\":\"s\"}', '2026-11-30T00:00:00.000000Z')"
)


def fill(path: Path, rows: int = 200) -> None:
    """Make a database of ours with several pages and no log."""
    bring_to_head(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        for number in range(rows):
            connection.execute(ROW % number)


def execute(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def assert_refused_untouched(path: Path) -> str:
    """Return the sentence; the directory is byte for byte what it was."""
    before = contents(path)
    with pytest.raises(StoreRefused) as refused:
        examine(path)
    assert contents(path) == before
    with pytest.raises(StoreRefused):
        bring_to_head(path)
    assert contents(path) == before
    assert str(path) in str(refused.value)
    return str(refused.value)


@pytest.mark.spec("state")
def test_a_file_that_is_missing_or_has_no_byte_is_empty(path: Path) -> None:
    assert examine(path) == Empty()
    assert contents(path) == {}
    path.touch()
    assert examine(path) == Empty()


@pytest.mark.spec("state")
def test_a_database_without_a_table_is_empty(path: Path) -> None:
    execute(path, "PRAGMA journal_mode=WAL; PRAGMA user_version=0")
    assert path.stat().st_size > 0
    assert examine(path) == Empty()


@pytest.mark.spec("state")
def test_a_version_table_without_a_version_and_nothing_else_is_empty(path: Path) -> None:
    execute(path, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    assert examine(path) == Empty()


@pytest.mark.spec("state")
def test_a_sound_database_is_at_its_revision_and_looking_leaves_no_trace(path: Path) -> None:
    fill(path)
    before, changed = contents(path), path.parent.stat().st_mtime_ns
    assert examine(path) == AtRevision(HEAD)
    assert contents(path) == before
    assert path.parent.stat().st_mtime_ns == changed


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "random": lambda _: os.urandom(16 * 1024),
    "valid header, then zeros": lambda sound: sound[:100] + bytes(len(sound) - 100),
    "magic, then zeros": lambda sound: sound[:16] + bytes(len(sound) - 16),
    "half": lambda sound: sound[: len(sound) // 2],
    "half a page": lambda sound: sound[:2048],
    "a header": lambda sound: sound[:100],
    "less than a magic": lambda sound: sound[:15],
    "zeros": lambda sound: bytes(len(sound)),
    "the last byte missing": lambda sound: sound[:-1],
    "a byte order mark": lambda sound: b"\xef\xbb\xbf" + sound,
    "a random page": lambda sound: sound[:4096] + os.urandom(4096) + sound[8192:],
    "text": lambda _: b"key: value\n" * 500,
}


@pytest.mark.spec("state")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_refused_untouched(path: Path, damage: Callable[[bytes], bytes]) -> None:
    fill(path)
    path.write_bytes(damage(path.read_bytes()))
    assert "backup" in assert_refused_untouched(path)


@pytest.mark.spec("state")
def test_an_index_that_lost_a_row_of_what_must_survive_is_damage(path: Path) -> None:
    fill(path, rows=3)
    lost = re.sub(rb"ws1(?!attached)", b"wsz", path.read_bytes())
    assert lost != path.read_bytes()
    path.write_bytes(lost)
    assert "is damaged" in assert_refused_untouched(path)


@pytest.mark.spec("state")
def test_a_whole_schema_with_two_versions_is_half_made(path: Path) -> None:
    fill(path)
    execute(path, "INSERT INTO alembic_version VALUES ('29990101_1')")
    assert "is half made" in assert_refused_untouched(path)


@pytest.mark.spec("state")
@pytest.mark.parametrize("pages", [1, 2, 3, 5])
def test_a_file_cut_at_any_page_is_refused_untouched(path: Path, pages: int) -> None:
    fill(path)
    path.write_bytes(path.read_bytes()[: 4096 * pages])
    assert_refused_untouched(path)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a sound database."""
    made = tmp_path_factory.mktemp("sound") / "plurnk.db"
    fill(made)
    return made


@pytest.mark.spec("state")
@settings(max_examples=60, deadline=None)
@example(position=2747, patch=b"\x80")
@given(position=st.integers(0, 2**20), patch=st.binary(min_size=1, max_size=200))
def test_whatever_bytes_are_overwritten_it_is_judged_or_refused_and_never_touched(
    sound: Path, tmp_path_factory: pytest.TempPathFactory, position: int, patch: bytes
) -> None:
    content = sound.read_bytes()
    start = position % len(content)
    path = tmp_path_factory.mktemp("patched") / "plurnk.db"
    path.write_bytes(content[:start] + patch + content[start + len(patch) :])
    before = contents(path)
    try:
        examine(path)
    except StoreRefused as refused:
        assert str(path) in str(refused)  # noqa: PT017 both outcomes are allowed
    assert contents(path) == before
    with suppress(StoreRefused):
        bring_to_head(path)


@pytest.mark.spec("state")
@pytest.mark.parametrize(
    "script",
    [
        pytest.param("CREATE TABLE attachments (x)", id="a part of some schema"),
        pytest.param(
            "CREATE TABLE server_attachments (x); CREATE TABLE audit (x)", id="our names, no version"
        ),
        pytest.param("CREATE VIEW v AS SELECT 1", id="a view"),
        pytest.param(
            "CREATE TABLE alembic_version (version_num TEXT); CREATE TABLE audit (x)", id="an empty version"
        ),
        pytest.param(
            "CREATE TABLE alembic_version (version_num TEXT);"
            "INSERT INTO alembic_version VALUES ('20261130_2'), ('other')",
            id="two versions",
        ),
        pytest.param(
            "CREATE TABLE alembic_version (version_num TEXT);"
            "INSERT INTO alembic_version VALUES ('20261130_2')",
            id="a version, no tables",
        ),
        pytest.param(
            "CREATE TABLE alembic_version (version_num); INSERT INTO alembic_version VALUES (x'00')",
            id="a blob",
        ),
        pytest.param("CREATE TABLE alembic_version (other TEXT)", id="a version table of another shape"),
    ],
)
def test_a_database_that_is_half_made_or_somebody_elses_is_refused_untouched(path: Path, script: str) -> None:
    execute(path, script)
    assert "move the file away" in assert_refused_untouched(path)


@pytest.mark.spec("state")
def test_what_is_not_a_plain_file_is_refused(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreRefused, match="not a regular file"):
        examine(path)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(StoreRefused, match="not a regular file"):
        examine(path)
    path.unlink()
    path.symlink_to(path)
    with pytest.raises(StoreRefused, match="cannot be reached"):
        examine(path)
    with pytest.raises(StoreRefused, match="cannot be reached"):
        examine(Path("/" + "x" * 5000))


def killed_with_a_log(path: Path) -> None:
    """Leave the database as a killed daemon does: with rows that are in the log only."""

    def work() -> None:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode=WAL")
        with connection:
            connection.execute(ROW % 9999)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL
    assert path.with_name(path.name + "-wal").stat().st_size > 0


@pytest.mark.spec("state")
def test_a_log_of_a_killed_daemon_counts_and_is_not_folded_in_by_looking(path: Path) -> None:
    fill(path)
    killed_with_a_log(path)
    before = contents(path)
    assert examine(path) == AtRevision(HEAD)
    assert contents(path) == before


@pytest.mark.spec("state")
@pytest.mark.parametrize("damage", ["random", "half", "zeros"])
def test_a_damaged_file_beside_a_log_is_refused_and_both_stay(path: Path, damage: str) -> None:
    fill(path)
    killed_with_a_log(path)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert_refused_untouched(path)


@pytest.mark.spec("state")
@pytest.mark.parametrize("is_emptied", [False, True])
def test_a_log_without_its_database_is_refused_and_stays(path: Path, is_emptied: bool) -> None:
    fill(path)
    killed_with_a_log(path)
    path.unlink()
    if is_emptied:
        path.touch()
    assert_refused_untouched(path)


@pytest.mark.spec("state")
def test_a_database_whose_rollback_journal_is_hot_is_judged_as_it_will_be(path: Path) -> None:
    fill(path)

    def work() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA cache_size=1")
        connection.execute("BEGIN")
        connection.execute("DELETE FROM server_attachments")
        connection.execute("DROP TABLE audit")
        for number in range(2000):
            connection.execute(ROW % number)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(work) == -signal.SIGKILL
    assert path.with_name(path.name + "-journal").stat().st_size > 0
    before = contents(path)
    assert examine(path) == AtRevision(HEAD)
    assert contents(path) == before
    bring_to_head(path)
    with closing(sqlite3.connect(file_uri(path, "mode=ro"), uri=True)) as connection:
        assert connection.execute("SELECT count(*) FROM server_attachments").fetchone() == (200,)
