"""The progress bar follows the activity events of a run. SPEC §calls."""

import io

from rich.console import Console

from app.cli.progress import CallProgress
from app.core.json_value import JsonObject

SNAPSHOT: JsonObject = {
    "type": "ACTIVITY_SNAPSHOT",
    "activityType": "plurnk.mcp.progress",
    "content": {"toolCallId": "call-1", "progress": 1, "total": 4, "message": "one\x1b[2J"},
}


def delta(*patch: JsonObject) -> JsonObject:
    return {"type": "ACTIVITY_DELTA", "activityType": "plurnk.mcp.progress", "patch": list(patch)}


def test_deltas_change_what_the_snapshot_said() -> None:
    with CallProgress(Console(file=io.StringIO()), "a · b") as progress:
        progress.take({"type": "RUN_STARTED"})
        assert progress.content == {}
        progress.take(SNAPSHOT)
        progress.take(delta({"op": "replace", "path": "/progress", "value": 2}))
        progress.take(
            delta({"op": "remove", "path": "/message"}, {"op": "add", "path": "/total", "value": 5})
        )
    assert progress.content == {"toolCallId": "call-1", "progress": 2, "total": 5}


def test_a_terminal_shows_the_bar_with_a_safe_message() -> None:
    written = io.StringIO()
    console = Console(file=written, force_terminal=True, width=120)
    with CallProgress(console, "workshop · build") as progress:
        progress.take(SNAPSHOT)
    assert "workshop · build: one\\x1b[2J" in written.getvalue()
    assert "25%" in written.getvalue()


def test_without_a_terminal_each_report_can_be_a_line() -> None:
    written = io.StringIO()
    with CallProgress(Console(file=written), "a · b", writes_lines=True) as progress:
        progress.take(SNAPSHOT)
        progress.take(
            delta({"op": "remove", "path": "/total"}, {"op": "replace", "path": "/progress", "value": 2.5})
        )
    assert written.getvalue() == "a · b: one\\x1b[2J (1 of 4)\na · b: one\\x1b[2J (2.5)\n"


def test_without_a_terminal_nothing_is_written() -> None:
    written = io.StringIO()
    with CallProgress(Console(file=written), "a · b") as progress:
        progress.take(SNAPSHOT)
    assert written.getvalue() == ""
