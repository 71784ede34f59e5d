"""What ``doctor`` found, for a person and for a program. SPEC §cli."""

import io

import pytest
from rich.console import Console

from app.cli.findings import Finding, Verdict, are_good, documents, show_findings
from app.cli.screen import Screen

pytestmark = pytest.mark.spec("cli")

GOOD = Finding("home", Verdict.GOOD, "/h; no daemon runs on it")
ODD = Finding("token", Verdict.WARNING, "PLURNK_TOKEN=none", "Unset it.")
BAD = Finding("server time", Verdict.FAULT, "it ended\x1b[2J")


def test_a_finding_is_a_line_and_its_fix_another() -> None:
    written = io.StringIO()
    console = Console(file=written, width=20)
    show_findings(Screen(console, console), [GOOD, ODD, BAD])
    assert written.getvalue().splitlines() == [
        "✓ home         /h; no daemon runs on it",
        "! token        PLURNK_TOKEN=none",
        "               Fix: Unset it.",
        "✗ server time  it ended\\x1b[2J",
    ]


def test_only_a_fault_is_not_good() -> None:
    assert are_good([GOOD, ODD])
    assert not are_good([GOOD, BAD])


def test_a_program_reads_the_same() -> None:
    assert documents([GOOD, ODD, BAD]) == [
        {"subject": "home", "verdict": "good", "what": "/h; no daemon runs on it"},
        {"subject": "token", "verdict": "warning", "what": "PLURNK_TOKEN=none", "fix": "Unset it."},
        {"subject": "server time", "verdict": "fault", "what": "it ended\\x1b[2J"},
    ]
