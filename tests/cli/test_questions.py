"""Who answers a run's questions: the flag, the person, or nobody. SPEC §cli, §calls."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console
from typing_extensions import override

from app.cli.failures import QuestionOpen
from app.cli.questions import answer
from app.cli.screen import Screen
from app.core.json_value import JsonObject

PROPOSAL: JsonObject = {
    "id": "int-1",
    "reason": "tool_call",
    "message": "Call tool 'build'\x1b[2J of server 'workshop'?",
    "metadata": {
        "plurnk": {
            "operation": "op-1",
            "server": "workshop",
            "tool": "build",
            "arguments": {"thing": "[b]box"},
        }
    },
}
ELICITATION: JsonObject = {
    "id": "int-2",
    "reason": "input_required",
    "metadata": {"plurnk": {"operation": "op-2"}},
}


class Person(Screen):
    """A screen with somebody in front of it."""

    @property
    @override
    def has_person(self) -> bool:
        return True


def screens() -> tuple[Screen, Screen, io.StringIO]:
    written = io.StringIO()
    console = Console(file=written, width=100)
    return Person(console, console), Screen(console, console), written


def typed(*lines: str) -> Callable[[str], str]:
    remaining = iter(lines)

    def ask(prompt: str) -> str:
        try:
            return next(remaining)
        except StopIteration:
            raise EOFError from None

    return ask


@pytest.mark.spec("cli")
@pytest.mark.parametrize(
    "lines, decision",
    [
        (["y\n"], "accept"),
        (["YES\n"], "accept"),
        (["\n"], "reject"),
        (["n\n"], "reject"),
        (["what\n", "y\n"], "accept"),
    ],
)
def test_a_person_decides_about_a_proposal(lines: list[str], decision: str) -> None:
    person, _, written = screens()
    entries = answer([PROPOSAL], workspace="w", accepts_proposals=False, screen=person, ask=typed(*lines))
    assert entries == [{"interruptId": "int-1", "status": "resolved", "payload": {"decision": decision}}]
    shown = written.getvalue()
    assert '"thing": "[b]box"' in shown
    assert "workshop · build" in shown
    assert "\x1b" not in shown


@pytest.mark.spec("cli")
def test_yes_accepts_a_proposal_without_anybody() -> None:
    _, nobody, _ = screens()
    entries = answer([PROPOSAL], workspace="w", accepts_proposals=True, screen=nobody, ask=typed())
    assert entries == [{"interruptId": "int-1", "status": "resolved", "payload": {"decision": "accept"}}]


@pytest.mark.spec("cli")
def test_without_anybody_the_question_stays_open_and_names_its_operation() -> None:
    _, nobody, _ = screens()
    with pytest.raises(QuestionOpen) as still_open:
        answer([PROPOSAL], workspace="w", accepts_proposals=False, screen=nobody, ask=typed())
    assert (still_open.value.operation, still_open.value.interrupts) == ("op-1", [PROPOSAL])


@pytest.mark.spec("cli")
def test_a_person_who_leaves_leaves_the_question_open() -> None:
    person, _, _ = screens()
    with pytest.raises(QuestionOpen):
        answer([PROPOSAL], workspace="w", accepts_proposals=False, screen=person, ask=typed())


@pytest.mark.spec("cli")
def test_yes_answers_nothing_but_proposals() -> None:
    _, nobody, _ = screens()
    with pytest.raises(QuestionOpen):
        answer([ELICITATION], workspace="w", accepts_proposals=True, screen=nobody, ask=typed())


@pytest.mark.spec("cli")
def test_what_a_server_requires_is_left_open_even_where_somebody_is_there() -> None:
    person, _, _ = screens()
    with pytest.raises(QuestionOpen) as still_open:
        answer([ELICITATION], workspace="w", accepts_proposals=False, screen=person, ask=typed("y\n"))
    assert still_open.value.operation == "op-2"
    assert still_open.value.exit_status == 6
