"""The figures that SPEC.md names are the constants of the code, word for word in their section."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from app.agui import events, stream
from app.connections import child_output, idle_connections, pipe_writer, prepare, wire
from app.connections.child_process import Patience
from app.connections.recovery import Backoff
from app.doors import accepting, body
from app.operations import settled
from app.store import audit
from app.store.engine import BUSY, Waits
from app.workspaces import hydration

SPEC = (Path(__file__).resolve().parent.parent / "SPEC.md").read_text()

FIGURES: list[tuple[str, str, Any, Any]] = [
    ("connection", "stdin closed, 2 s, SIGTERM to the group, 2 s, SIGKILL", Patience().eof, 2.0),
    ("connection", "stdin closed, 2 s, SIGTERM to the group, 2 s, SIGKILL", Patience().term, 2.0),
    ("connection", "then SIGKILL after 0.5 s", Patience().group, 0.5),
    ("connection", "counts as its end after 1 s", Patience().silence, 1.0),
    ("connection", "1 s doubling to 60 s", (Backoff().first, Backoff().ceiling), (1.0, 60.0)),
    ("connection", "last 64 KiB kept", child_output.STDERR_KEPT, 64 * 1024),
    ("connection", "At most 256 KiB waits", pipe_writer.HIGH_WATER, 256 * 1024),
    ("connection", "Idle connections are kept 4 s", idle_connections.KEEPALIVE_S, 4.0),
    ("connection", "more than 200 levels", wire.DEPTH_MAX, 200),
    ("prepare", "more than 1000 pages", prepare.PAGES_MAX, 1000),
    ("hydration", "waits at most 0.2 s", hydration.PATIENCE_S, 0.2),
    ("hydration", "1 to 60 s", (hydration.BACK_OFF_FIRST_S, hydration.BACK_OFF_MAX_S), (1.0, 60.0)),
    ("calls", "kept for 10 minutes (at most 1000)", (settled.KEPT_S, settled.KEPT_MAX), (600.0, 1000)),
    ("calls", "within 64 MiB a workspace", settled.KEPT_BYTES_MAX, 64 * 1024 * 1024),
    ("agui", "`: keep-alive` every 15 s", stream.KEEP_ALIVE_S, 15.0),
    ("agui", "one event at most 8 MiB", events.EVENT_MAX, 8 * 1024 * 1024),
    ("agui", "after 60 s without taking anything", stream.WRITE_TIMEOUT_S, 60.0),
    ("agui", "A body that takes longer than 30 s", body.BODY_TIMEOUT_S, 30.0),
    ("state", "at most 5 s for its turn", Waits().write_turn, timedelta(seconds=5)),
    ("state", "5 s for another process's lock", BUSY, timedelta(seconds=5)),
    ("limits", "looked after twice a second", 1 / accepting.RETRY_S, 2),
    ("observe", "kept 90 days", audit.KEPT, timedelta(days=90)),
]


@pytest.mark.spec("connection", "prepare", "hydration", "calls", "agui", "state", "limits", "observe")
@pytest.mark.parametrize("section, words, value, figure", FIGURES, ids=[each[1] for each in FIGURES])
def test_a_figure_of_the_specification_is_the_constant(
    section: str, words: str, value: Any, figure: Any
) -> None:
    text = SPEC.split(f"## §{section}", 1)[1].split("\n## §", 1)[0]
    assert words in re.sub(r"\s+", " ", text)
    assert value == figure
