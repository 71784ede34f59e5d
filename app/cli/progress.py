"""The progress bar of a running call, fed by the activity events of its AG-UI run. SPEC §calls, §agui."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

from app.cli.members import number
from app.cli.printable import one_line
from app.core.json_value import Json, JsonObject

ACTIVITY = "plurnk.mcp.progress"


class CallProgress:
    """A bar that comes with the first report and goes with the call.

    Without a terminal there is no bar: ``writes_lines`` gives a line for each report instead, else nothing.
    """

    def __init__(self, console: Console, title: str, *, writes_lines: bool = False) -> None:
        self._console = console
        self._writes_lines = writes_lines and not console.is_terminal
        self._title = title
        self._content: dict[str, Json] = {}
        self._task: TaskID | None = None
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        """Return the bar, which shows nothing yet."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    @property
    def content(self) -> dict[str, Json]:
        """What the run last reported: ``progress``, ``total``, ``message``."""
        return dict(self._content)

    def take(self, event: JsonObject) -> None:
        """Show what an event says about progress; other events change nothing."""
        if event.get("activityType") != ACTIVITY:
            return
        if isinstance(content := event.get("content"), dict):
            self._content = dict(content)
        elif isinstance(patch := event.get("patch"), list):
            for operation in patch:
                if isinstance(operation, dict):
                    self._apply(operation)
        self._show()

    def _apply(self, operation: JsonObject) -> None:
        """Apply one JSON Patch operation on a top-level member."""
        member = str(operation.get("path", "")).removeprefix("/")
        if operation.get("op") == "remove":
            self._content.pop(member, None)
        else:
            self._content[member] = operation.get("value")

    def _show(self) -> None:
        completed, total = number(self._content.get("progress")), number(self._content.get("total"))
        if self._task is None:
            self._task = self._bar.add_task(self._title, total=total)
        message = self._content.get("message")
        description = self._title if message is None else f"{self._title}: {one_line(str(message), limit=60)}"
        self._bar.update(self._task, completed=completed or 0, total=total, description=description)
        if self._writes_lines:
            known = "" if total is None else f" of {total:g}"
            self._console.print(f"{description} ({completed or 0:g}{known})", markup=False, soft_wrap=True)
