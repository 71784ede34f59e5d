"""The answer to an interrupt."""

from typing import Any

import pytest

from app.core.door_problems import InputMalformed
from app.core.interrupts import ResumeEntry
from app.rest.models import FAULTS_MAX, parse_answer

pytestmark = pytest.mark.spec("agui")


def test_an_answer_is_a_resume_entry() -> None:
    body: Any = {"status": "resolved", "payload": {"n": None}, "metadata": {"plurnk": {"action": "decline"}}}
    assert parse_answer("int-1", body) == ResumeEntry(
        "int-1", "resolved", {"n": None}, {"plurnk": {"action": "decline"}}
    )
    assert parse_answer("int-1", {"status": "cancelled"}) == ResumeEntry("int-1", "cancelled")


@pytest.mark.parametrize(
    "body, pointers",
    [
        ({}, ["/status"]),
        ("text", [""]),
        ({"status": "resolved", "interruptId": "int-2"}, ["/interruptId"]),
        ({"status": "RESOLVED", "metadata": []}, ["/status", "/metadata"]),
    ],
)
def test_a_malformed_answer_names_its_faults(body: Any, pointers: list[str]) -> None:
    with pytest.raises(InputMalformed) as raised:
        parse_answer("int-1", body)
    errors: Any = raised.value.facts["errors"]
    assert [error["pointer"] for error in errors] == pointers


def test_not_every_fault_of_a_long_answer_is_named() -> None:
    with pytest.raises(InputMalformed) as raised:
        parse_answer("int-1", {"status": "cancelled", **{f"member-{n}": n for n in range(1000)}})
    errors: Any = raised.value.facts["errors"]
    assert len(errors) == FAULTS_MAX
