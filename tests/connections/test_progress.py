"""progress.py: only growing, well-formed progress under our own token passes."""

from typing import Any

import pytest

from app.connections.progress import MESSAGE_MAX, ProgressGate
from app.connections.transport import Diagnostics
from app.connections.wire import Notification
from app.core.answers import Progress


def progress(**params: Any) -> Notification:
    return Notification("notifications/progress", params)


@pytest.mark.spec("calls")
def test_growing_progress_passes_and_the_rest_is_counted() -> None:
    seen: list[Progress] = []
    diagnostics = Diagnostics()
    gate = ProgressGate(0, seen.append, diagnostics)
    for notification in (
        progress(progressToken=0, progress=-1),
        progress(progressToken=0, progress=0.5, total=2, message="half"),
        progress(progressToken=0, progress=0.5),
        progress(progressToken=0, progress=0.25),
        progress(progressToken=0, progress=1, total=None, message=None),
        progress(progressToken=0, progress=2, message="x" * (MESSAGE_MAX + 1)),
        Notification("notifications/message", {}),
    ):
        gate.take(notification)
    assert seen == [
        Progress(-1.0),
        Progress(0.5, 2.0, "half"),
        Progress(1.0),
        Progress(2.0, None, "x" * MESSAGE_MAX),
    ]
    assert diagnostics == Diagnostics(ignored_progress=2, ignored_notifications=1)


@pytest.mark.spec("calls")
@pytest.mark.parametrize(
    "params",
    [
        {"progressToken": "0", "progress": 1},
        {"progressToken": 0.0, "progress": 1},
        {"progressToken": False, "progress": 1},
        {"progressToken": None, "progress": 1},
        {"progressToken": 1, "progress": 1},
        {"progress": 1},
        {"progressToken": 0},
        {"progressToken": 0, "progress": "1"},
        {"progressToken": 0, "progress": True},
        {"progressToken": 0, "progress": None},
        {"progressToken": 0, "progress": 1, "total": "2"},
        {"progressToken": 0, "progress": 1, "message": 3},
    ],
)
def test_foreign_and_malformed_progress_is_ignored_and_spoils_nothing(params: dict[str, Any]) -> None:
    seen: list[Progress] = []
    diagnostics = Diagnostics()
    gate = ProgressGate(0, seen.append, diagnostics)
    gate.take(progress(**params))
    gate.take(progress(progressToken=0, progress=2))
    assert seen == [Progress(2.0)]
    assert diagnostics.ignored_progress == 1


def test_progress_nobody_asked_for_is_counted() -> None:
    diagnostics = Diagnostics()
    ProgressGate(0, None, diagnostics).take(progress(progressToken=0, progress=1))
    assert diagnostics.ignored_progress == 1
