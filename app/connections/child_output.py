"""What of a child's output is kept, and what of that may be shown. SPEC §connection, §references.

Bytes are kept raw and bounded; only text that was masked, cleaned of control characters and cut leaves this
module.
"""

import re
from collections import deque
from collections.abc import Callable
from typing import Final

STDERR_KEPT: Final = 64 * 1024
STDERR_SHOWN: Final = 2048
HEADS_KEPT: Final = 5
HEAD_BYTES: Final = 8192
HEAD_SHOWN: Final = 160

_WINDOW: Final = 16 * 1024
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")

Masking = Callable[[str], str]


class StderrTail:
    """The last ``STDERR_KEPT`` bytes of a stream of any length and any line structure."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def add(self, chunk: bytes) -> None:
        """Append what was read."""
        self._kept += chunk
        if len(self._kept) > 2 * STDERR_KEPT:  # trimmed now and then, so that adding stays linear
            del self._kept[:-STDERR_KEPT]

    def text(self, mask: Masking) -> str | None:
        """Return the end of it as it may be shown; None where nothing was written."""
        raw = bytes(self._kept[-STDERR_KEPT:])
        # Cut far behind the beginning, where a secret may have lost its head, and mask before cutting again.
        shown = _shown(mask(raw.decode("utf-8", "replace"))[-_WINDOW:], mask).strip()
        return shown[-STDERR_SHOWN:] or None


class DroppedLines:
    """The heads of the last lines that were no messages."""

    def __init__(self) -> None:
        self._heads: deque[bytes] = deque(maxlen=HEADS_KEPT)

    def add(self, line: bytes) -> None:
        """Keep the beginning of a line."""
        self._heads.append(line[:HEAD_BYTES])

    def shown(self, mask: Masking) -> tuple[str, ...]:
        """Return them as they may be shown, oldest first."""
        return tuple(_shown(mask(head.decode("utf-8", "replace")), mask)[:HEAD_SHOWN] for head in self._heads)


def _shown(text: str, mask: Masking) -> str:
    """Return the text without escapes and controls, masked again: cleaning joins what they split."""
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    printable = ("".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line) for line in lines)
    return mask("\n".join(line for line in printable if line.strip()))
