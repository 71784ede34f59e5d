"""The console of every command: whatever is written to it, nothing of it controls the terminal. SPEC §cli.

Each text is made ``printable`` where it is put on the screen, so that its room is known; this holds where one was
forgotten.
"""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from typing_extensions import override

from app.cli.printable import printable


class SafeConsole(Console):
    """Writes the colours and moves that are ours, and every other control character as its code."""

    @override
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Give the segments of what is shown."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def console(*, stderr: bool = False) -> Console:
    """Return the console for standard output, or for standard error; nothing is highlighted that nobody marked."""
    return SafeConsole(stderr=stderr, highlight=False)
