"""The durable map as rows. SPEC §effective, §state."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy.schema import CreateTable
from typing_extensions import override

from app.core.attachments import Attached, AttachmentRecord, Detached
from app.store.attachments import apply, load, workspaces
from app.store.schema import server_attachments

AT = datetime(2026, 11, 30, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
RECORDS = st.one_of(st.none(), st.just(Detached()), TEXTS.map(Attached))


def memory() -> sqlite3.Connection:
    """Open a database in memory with the tables."""
    connection = sqlite3.connect(":memory:")
    connection.execute(str(CreateTable(server_attachments)))
    return connection


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """Open a database for one test."""
    with closing(memory()) as opened:
        yield opened


@pytest.mark.spec("effective")
def test_an_entry_is_attached_replaced_hidden_and_dropped(connection: sqlite3.Connection) -> None:
    seen: list[dict[str, AttachmentRecord]] = []
    for record in (Attached('{"a": 1}'), Attached('{"b": 2}'), Detached(), Attached("{}"), None, None):
        apply(connection, "w", "s", record=record, at=AT)
        seen.append(dict(load(connection, "w")))
    assert seen == [
        {"s": Attached('{"a": 1}')},
        {"s": Attached('{"b": 2}')},
        {"s": Detached()},
        {"s": Attached("{}")},
        {},
        {},
    ]


@pytest.mark.spec("effective")
def test_an_empty_map_leaves_no_row_and_no_workspace(connection: sqlite3.Connection) -> None:
    apply(connection, "w", "s", record=Detached(), at=AT)
    assert workspaces(connection) == ["w"]
    apply(connection, "w", "s", record=None, at=AT)
    assert workspaces(connection) == []
    assert connection.execute("SELECT count(*) FROM server_attachments").fetchone() == (0,)


@pytest.mark.spec("state")
def test_workspaces_differ_by_case_and_are_listed_once_and_sorted(connection: sqlite3.Connection) -> None:
    for workspace in ("b", "B", "a.1", "b", "_"):
        for name in ("x", "y"):
            apply(connection, workspace, name, record=Detached(), at=AT)
    assert workspaces(connection) == ["B", "_", "a.1", "b"]
    assert dict(load(connection, "B")) == {"x": Detached(), "y": Detached()}


@pytest.mark.spec("state")
@settings(deadline=None)
@given(text=TEXTS)
def test_a_definition_is_stored_byte_for_byte(text: str) -> None:
    with closing(memory()) as connection:
        apply(connection, "w", "s", record=Attached(text), at=AT)
        assert load(connection, "w")["s"] == Attached(text)
        stored = connection.execute("SELECT CAST(definition AS BLOB) FROM server_attachments").fetchall()
        assert stored == [(text.encode(),)]


@pytest.mark.spec("state")
def test_a_row_says_when_it_was_written(connection: sqlite3.Connection) -> None:
    apply(connection, "w", "s", record=Detached(), at=AT)
    apply(connection, "w", "s", record=Detached(), at=AT.replace(year=2027))
    rows = connection.execute("SELECT updated_at FROM server_attachments").fetchall()
    assert rows == [("2027-11-30T00:00:00.000000Z",)]


@pytest.mark.spec("state")
def test_a_change_is_one_statement(connection: sqlite3.Connection) -> None:
    statements: list[str] = []
    connection.commit()
    connection.isolation_level = None
    connection.set_trace_callback(statements.append)
    apply(connection, "w", "s", record=Attached("{}"), at=AT)
    apply(connection, "w", "s", record=Attached("{}"), at=AT)
    apply(connection, "w", "s", record=None, at=AT)
    assert [statement.split()[0] for statement in statements] == ["INSERT", "INSERT", "DELETE"]


class AttachmentMap(RuleBasedStateMachine):
    """The table against a dict of dicts."""

    names: Bundle[str] = Bundle("names")

    def __init__(self) -> None:
        super().__init__()
        self.connection = memory()
        self.model: dict[str, dict[str, AttachmentRecord]] = {}

    @initialize(target=names)
    def name(self) -> str:
        return "s"

    @rule(target=names, name=st.sampled_from(["s", "t", "s-1"]))
    def another(self, name: str) -> str:
        return name

    @rule(workspace=st.sampled_from(["w", "W", "w.1"]), name=names, record=RECORDS)
    def change(self, workspace: str, name: str, record: AttachmentRecord | None) -> None:
        apply(self.connection, workspace, name, record=record, at=AT)
        entries = self.model.setdefault(workspace, {})
        if record is None:
            entries.pop(name, None)
        else:
            entries[name] = record
        if not entries:
            del self.model[workspace]

    @rule()
    def come_back(self) -> None:
        self.connection.commit()

    @invariant()
    def agrees(self) -> None:
        assert workspaces(self.connection) == sorted(self.model)
        for workspace in ("w", "W", "w.1"):
            loaded = load(self.connection, workspace)
            assert dict(loaded) == self.model.get(workspace, {})
            assert list(loaded) == sorted(loaded)

    @override
    def teardown(self) -> None:
        self.connection.close()


TestAttachmentMap = pytest.mark.spec("effective")(AttachmentMap.TestCase)
TestAttachmentMap.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
