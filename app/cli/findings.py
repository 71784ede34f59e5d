"""What ``doctor`` found, as lines for a person and as JSON. SPEC §cli."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.text import Text

from app.cli.printable import printable
from app.cli.screen import Screen
from app.core.json_value import Json, JsonObject


class Verdict(StrEnum):
    """How a finding is meant."""

    GOOD = "good"
    WARNING = "warning"
    """Works, and is worth a look."""
    FAULT = "fault"
    """Keeps the daemon or a server from working."""


_MARKS = {Verdict.GOOD: ("✓", "green"), Verdict.WARNING: ("!", "yellow"), Verdict.FAULT: ("✗", "red")}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    verdict: Verdict
    what: str
    fix: str | None = None
    """What to do, or the command that does it."""

    def document(self) -> JsonObject:
        """Return the finding as ``--json`` shows it."""
        document: JsonObject = {
            "subject": self.subject,
            "verdict": str(self.verdict),
            "what": printable(self.what),
        }
        return document if self.fix is None else {**document, "fix": printable(self.fix)}


def are_good(findings: Sequence[Finding]) -> bool:
    """Return whether nothing keeps anything from working."""
    return all(finding.verdict is not Verdict.FAULT for finding in findings)


def documents(findings: Sequence[Finding]) -> list[Json]:
    """Return the findings as ``--json`` shows them."""
    return [finding.document() for finding in findings]


def show_findings(screen: Screen, findings: Sequence[Finding]) -> None:
    """Show a line for each finding, and below it what to do."""
    width = max((len(finding.subject) for finding in findings), default=0)
    for finding in findings:
        mark, style = _MARKS[finding.verdict]
        line = Text.assemble((mark, style), f" {finding.subject:{width}}  ", printable(finding.what))
        screen.say(line)
        if finding.fix is not None:
            screen.say(f"  {'':{width}}  Fix: {finding.fix}")
