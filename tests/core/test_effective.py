"""Effective definitions. SPEC §effective."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.attachments import Attached, AttachmentRecord, Detached
from app.core.definitions import HttpDefinition, StdioDefinition, parse_definition
from app.core.effective import EffectiveServer, after_detach, detached, resolve_all
from app.core.problems import DefinitionInvalid

names = st.sampled_from(["a", "b", "c", "d"])


def document(name: str, command: str) -> dict[str, str]:
    return {"name": name, "transport": "stdio", "command": command}


def definition(name: str, command: str) -> StdioDefinition | HttpDefinition:
    return parse_definition(document(name, command))


def attached(name: str) -> Attached:
    return Attached(orjson.dumps(document(name, "/attached")).decode())


@st.composite
def maps(draw: st.DrawFn) -> dict[str, AttachmentRecord]:
    return {name: attached(name) if draw(st.booleans()) else Detached() for name in draw(st.sets(names))}


@pytest.mark.spec("effective")
@given(st.sets(names), maps())
def test_the_durable_map_overlays_the_defaults(
    defaults: set[str], records: dict[str, AttachmentRecord]
) -> None:
    expected: dict[str, EffectiveServer] = {}
    for name in "abcd":
        match records.get(name):
            case Attached():
                expected[name] = EffectiveServer(name, "workspace", definition(name, "/attached"))
            case None if name in defaults:
                expected[name] = EffectiveServer(name, "service", definition(name, "/default"))
            case _:
                continue
    resolved = resolve_all({name: definition(name, "/default") for name in defaults}, records)
    assert resolved == expected
    assert list(resolved) == sorted(resolved)
    assert detached(records) == sorted(name for name in records if isinstance(records[name], Detached))


@pytest.mark.spec("effective")
def test_detaching_leaves_a_tombstone_over_a_default_only() -> None:
    defaults = {"a": definition("a", "/default")}
    assert after_detach("a", defaults) == Detached()
    assert after_detach("b", defaults) is None


@pytest.mark.spec("effective")
def test_a_row_that_no_longer_validates_is_told_by_its_server_alone() -> None:
    resolved = resolve_all({}, {"a": attached("a"), "b": Attached("{}")})
    broken = resolved["b"]
    assert resolved["a"].problem is None
    assert broken.definition is None
    assert isinstance(broken.problem, DefinitionInvalid)
    assert broken.problem.__traceback__ is None
    assert broken.problem.facts["server"] == "b"
