"""Defaults overlaid by the workspace's map: what shows, what is hidden, what no longer validates."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.attachments import Attached, AttachmentRecord, Detached
from app.core.definitions import parse_definition
from app.core.problems import DefinitionInvalid
from app.workspaces.effective_set import EffectiveSet

pytestmark = pytest.mark.spec("effective")


def definition(name: str, command: str = "/bin/default") -> dict[str, Any]:
    return {"name": name, "transport": "stdio", "command": command}


def attached(name: str, command: str = "/bin/own") -> Attached:
    return Attached(json.dumps(definition(name, command)))


def with_defaults(*names: str) -> EffectiveSet:
    return EffectiveSet({name: parse_definition(definition(name)) for name in names})


def shown(effective: EffectiveSet) -> dict[str, str]:
    return {name: server.source for name, server in effective.servers.items()}


def test_a_tombstone_hides_a_default_and_an_attachment_shadows_it() -> None:
    effective = with_defaults("a", "b", "c")
    effective.load({"b": Detached(), "c": attached("c"), "d": attached("d")})
    assert shown(effective) == {"a": "service", "c": "workspace", "d": "workspace"}
    assert effective.detached == ["b"]


def test_what_is_put_with_its_definition_is_what_the_store_gives_back() -> None:
    put, loaded = with_defaults("a"), with_defaults("a")
    put.put("a", attached("a"), parse_definition(definition("a", "/bin/own")))
    loaded.load({"a": attached("a")})
    assert put.servers == loaded.servers
    put.put("a", Detached(), parse_definition(definition("a")))
    assert (shown(put), put.detached) == ({}, ["a"])


def test_dropping_the_entry_lets_the_default_show_again() -> None:
    effective = with_defaults("a")
    effective.load({"a": Detached()})
    effective.put("a", attached("a"))
    assert shown(effective) == {"a": "workspace"}
    effective.put("a", None)
    assert shown(effective) == {"a": "service"}
    assert effective.detached == []


def test_a_row_that_no_longer_validates_is_shown_with_its_problem() -> None:
    effective = with_defaults()
    effective.load({"a": Attached('{"name":"a"}'), "b": attached("b")})
    broken = effective.servers["a"]
    assert broken.definition is None
    assert isinstance(broken.problem, DefinitionInvalid)
    assert broken.problem.facts["server"] == "a"
    assert effective.servers["b"].problem is None


NAMES = st.sampled_from(["a", "b", "c"])
RECORDS = st.none() | st.just(Detached()) | st.sampled_from(["/bin/one", "/bin/two"])


@given(steps=st.lists(st.tuples(NAMES, RECORDS), max_size=12))
def test_any_order_of_changes_is_what_loading_the_result_gives(steps: list[tuple[str, Any]]) -> None:
    one, records = with_defaults("a", "b"), dict[str, AttachmentRecord]()
    for name, wanted in steps:
        record = attached(name, wanted) if isinstance(wanted, str) else wanted
        one.put(name, record)
        if record is None:
            records.pop(name, None)
        else:
            records[name] = record
    other = with_defaults("a", "b")
    other.load(records)
    assert dict(one.servers) == dict(other.servers)
    assert list(one.servers) == sorted(one.servers)
    assert one.detached == other.detached
