"""Answers to interrupts: whether they fit, and whether two are the same."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.events import Interrupt
from app.core.interrupts import ResumeEntry, fingerprint, require_fit
from app.core.operation_problems import AnswerInvalid
from app.core.proposals import DECISION_SCHEMA

INTERRUPT = Interrupt(
    id="int-1",
    operation="op-1",
    reason="tool_call",
    message="?",
    expires_at="2026-11-30T11:45:19Z",
    response_schema=DECISION_SCHEMA,
    metadata={},
)


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    "entry",
    [
        ResumeEntry("int-1", "resolved", {"decision": "accept"}),
        ResumeEntry("int-1", "resolved", {"decision": "reject"}),
        ResumeEntry("int-1", "cancelled"),
        ResumeEntry("int-1", "cancelled", "whatever"),
    ],
)
def test_a_decision_fits_and_so_does_every_cancel(entry: ResumeEntry) -> None:
    require_fit(INTERRUPT, entry)


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    "payload",
    [
        None,
        "accept",
        {},
        {"decision": "maybe"},
        {"decision": True},
        {"decision": "accept", "arguments": {}},
        [],
    ],
)
def test_anything_else_does_not_fit(payload: Any) -> None:
    with pytest.raises(AnswerInvalid) as raised:
        require_fit(INTERRUPT, ResumeEntry("int-1", "resolved", payload))
    assert raised.value.facts["interrupt"] == "int-1"
    assert raised.value.facts["errors"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(first=JSON, second=JSON)
def test_two_answers_are_the_same_exactly_where_their_json_is(first: Any, second: Any) -> None:
    def same(one: Any, other: Any) -> bool:
        return fingerprint(ResumeEntry("i", "resolved", one)) == fingerprint(
            ResumeEntry("i", "resolved", other)
        )

    assert same(first, json.loads(json.dumps(first)))
    assert same(first, second) == (json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True))


@pytest.mark.spec("calls")
def test_one_true_and_one_point_nought_are_three_answers() -> None:
    assert len({fingerprint(ResumeEntry("i", "resolved", value)) for value in (1, True, 1.0)}) == 3


@pytest.mark.spec("calls")
def test_a_decline_is_another_answer_than_a_cancel_and_foreign_metadata_changes_nothing() -> None:
    cancel = ResumeEntry("i", "cancelled")
    decline = ResumeEntry("i", "cancelled", metadata={"plurnk": {"action": "decline"}})
    noted = ResumeEntry("i", "cancelled", metadata={"other": 1})
    assert fingerprint(cancel) != fingerprint(decline)
    assert fingerprint(cancel) == fingerprint(noted)
    assert fingerprint(cancel) == fingerprint(ResumeEntry("i", "cancelled", "not looked at"))


def test_an_answer_nested_beyond_reason_is_invalid() -> None:
    payload: Any = 0
    for _ in range(100_000):
        payload = [payload]
    with pytest.raises(AnswerInvalid):
        fingerprint(ResumeEntry("i", "resolved", payload))
