"""Who answers a run's questions: the flag, the person, or nobody. SPEC §cli, §calls."""

import io
import os
import sys
import threading
from collections.abc import Callable

import httpx2
import pytest
from rich.console import Console
from typing_extensions import override

from app.cli.failures import QuestionOpen
from app.cli.questions import answer
from app.cli.screen import Screen
from app.cli.sign_in import Person
from app.core.json_value import JsonObject
from tests.support.redirecting import authorization_url, free_port, redirecting_server

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


class Attended(Screen):
    """A screen with somebody in front of it."""

    @property
    @override
    def has_person(self) -> bool:
        return True


def screens() -> tuple[Screen, Screen, io.StringIO]:
    written = io.StringIO()
    console = Console(file=written, width=100)
    return Attended(console, console), Screen(console, console), written


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
    entries = answer([PROPOSAL], workspace="w", accepts_proposals=False, person=Person(person, typed(*lines)))
    assert entries == [{"interruptId": "int-1", "status": "resolved", "payload": {"decision": decision}}]
    shown = written.getvalue()
    assert '"thing": "[b]box"' in shown
    assert "workshop · build" in shown
    assert "\x1b" not in shown


@pytest.mark.spec("cli")
def test_yes_accepts_a_proposal_without_anybody() -> None:
    _, nobody, _ = screens()
    entries = answer([PROPOSAL], workspace="w", accepts_proposals=True, person=Person(nobody, typed()))
    assert entries == [{"interruptId": "int-1", "status": "resolved", "payload": {"decision": "accept"}}]


@pytest.mark.spec("cli")
def test_without_anybody_the_question_stays_open_and_names_its_operation() -> None:
    _, nobody, _ = screens()
    with pytest.raises(QuestionOpen) as still_open:
        answer([PROPOSAL], workspace="w", accepts_proposals=False, person=Person(nobody, typed()))
    assert (still_open.value.operation, still_open.value.interrupts) == ("op-1", [PROPOSAL])


@pytest.mark.spec("cli")
def test_a_person_who_leaves_leaves_the_question_open() -> None:
    person, _, _ = screens()
    with pytest.raises(QuestionOpen):
        answer([PROPOSAL], workspace="w", accepts_proposals=False, person=Person(person, typed()))


@pytest.mark.spec("cli")
def test_yes_answers_nothing_but_proposals() -> None:
    _, nobody, _ = screens()
    with pytest.raises(QuestionOpen):
        answer([ELICITATION], workspace="w", accepts_proposals=True, person=Person(nobody, typed()))


FORM: JsonObject = {
    "id": "int-3",
    "reason": "input_required",
    "message": "Where to?\x1b[2J",
    "responseSchema": {"type": "object", "properties": {"env": {"type": "string"}}, "required": ["env"]},
    "metadata": {"plurnk": {"operation": "op-3", "server": "shop", "tool": "deploy", "mode": "form"}},
}
PAGE = "https://pay.example/x?o=1"
LINK: JsonObject = {
    "id": "int-4",
    "reason": "input_required",
    "message": "Server 'shop' asks you to open a page at pay.example: Pay first.",
    "responseSchema": {"type": ["object", "null"]},
    "metadata": {
        "plurnk": {"operation": "op-3", "server": "shop", "mode": "url", "url": PAGE, "host": "pay.example"}
    },
}
DECLINED: JsonObject = {"status": "cancelled", "metadata": {"plurnk": {"action": "decline"}}}
CANCELLED: JsonObject = {"status": "cancelled"}


@pytest.mark.spec("cli", "calls")
@pytest.mark.parametrize(
    "lines, entry",
    [
        (["prod\n", "y\n"], {"status": "resolved", "payload": {"env": "prod"}}),
        (["/decline\n"], DECLINED),
        (["/cancel\n"], CANCELLED),
        (["prod\n", "d\n"], DECLINED),
    ],
)
def test_a_form_is_filled_in_declined_or_cancelled(lines: list[str], entry: JsonObject) -> None:
    screen, _, written = screens()
    entries = answer(
        [FORM],
        workspace="w",
        accepts_proposals=True,
        person=Person(screen, typed(*lines), lambda _url: False),
    )
    assert entries == [{"interruptId": "int-3", **entry}]
    assert "shop · deploy" in written.getvalue()
    assert "\x1b" not in written.getvalue()


@pytest.mark.spec("cli", "calls")
@pytest.mark.parametrize(
    "lines, entry, pages",
    [
        (["\n", "what\n", "y\n"], {"status": "resolved"}, [PAGE]),
        (["d\n"], DECLINED, []),
        (["a\n", "c\n"], CANCELLED, []),
    ],
)
def test_a_page_is_opened_only_after_a_yes_to_its_host(
    lines: list[str], entry: JsonObject, pages: list[str]
) -> None:
    screen, _, written = screens()
    opened: list[str] = []

    def browse(url: str) -> bool:
        opened.append(url)
        return True

    entries = answer(
        [LINK], workspace="w", accepts_proposals=False, person=Person(screen, typed(*lines), browse)
    )
    assert (entries, opened) == ([{"interruptId": "int-4", **entry}], pages)
    assert "Host: pay.example" in written.getvalue()
    assert PAGE in written.getvalue()


@pytest.mark.spec("cli", "calls")
def test_the_questions_of_a_set_are_asked_one_after_the_other() -> None:
    screen, _, written = screens()
    person = Person(screen, typed("c\n", "prod\n", "y\n"), lambda _url: False)
    entries = answer([LINK, FORM], workspace="w", accepts_proposals=False, person=person)
    assert [entry["status"] for entry in entries] == ["cancelled", "resolved"]
    assert "Question 2 of 2" in written.getvalue()


@pytest.mark.spec("cli", "calls")
def test_one_question_that_is_not_answered_leaves_the_whole_set_open() -> None:
    screen, _, _ = screens()
    with pytest.raises(QuestionOpen) as still_open:
        answer(
            [LINK, FORM],
            workspace="w",
            accepts_proposals=False,
            person=Person(screen, typed("y\n"), lambda _url: True),
        )
    assert (still_open.value.operation, still_open.value.interrupts) == ("op-3", [LINK, FORM])


@pytest.mark.spec("cli")
def test_a_question_of_an_unknown_kind_is_left_open_even_where_somebody_is_there() -> None:
    screen, _, _ = screens()
    with pytest.raises(QuestionOpen) as still_open:
        answer([ELICITATION], workspace="w", accepts_proposals=False, person=Person(screen, typed("y\n")))
    assert still_open.value.operation == "op-2"
    assert still_open.value.exit_status == 6


@pytest.mark.spec("cli", "oauth")
def test_a_sign_in_in_the_middle_of_a_call_hands_the_callback_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    screen, _, written = screens()
    reading, writing = os.pipe()
    monkeypatch.setattr(sys, "stdin", os.fdopen(reading))
    redirect = f"http://127.0.0.1:{free_port()}/back"
    with redirecting_server() as page:
        url = authorization_url(page, redirect)
        interrupt: JsonObject = {
            "id": "int-5",
            "reason": "plurnk:authorization",
            "message": "Server 'docs' wants more.",
            "metadata": {"plurnk": {"operation": "op-5", "server": "docs", "url": url}},
        }

        def browse(opened: str) -> bool:
            threading.Thread(target=httpx2.get, args=(opened,), kwargs={"follow_redirects": True}).start()
            return True

        [entry] = answer(
            [interrupt],
            workspace="w",
            accepts_proposals=False,
            person=Person(screen, typed("y\n"), browse),
        )
        [refused] = answer(
            [interrupt], workspace="w", accepts_proposals=False, person=Person(screen, typed("d\n"), browse)
        )
    sys.stdin.close()
    os.close(writing)
    payload = entry.pop("payload")
    assert entry == {"interruptId": "int-5", "status": "resolved"}
    assert isinstance(payload, dict)
    assert str(payload["callbackUrl"]).startswith(f"{redirect}?code=code-canary-1&state=state-1")
    assert refused == {"interruptId": "int-5", **DECLINED}
    assert "Host: 127.0.0.1" in written.getvalue()
    assert "code-canary" not in written.getvalue()
