"""Bytes of a stream to lines, sans I/O: split on LF alone, linear time, bounded memory. SPEC §connection.

MCP 2026-07-28 basic/transports/stdio. What the lines mean is ``wire``'s business.
"""

from collections.abc import Iterator
from dataclasses import dataclass

EDGE = 256
"""Bytes kept of either end of a line over the limit; enough for ``wire`` to find whose answer it was."""


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line over the limit, of which only the ends were kept."""

    edges: bytes
    """The first and the last ``EDGE`` bytes, one after the other."""
    size: int


class LineSplitter:
    """Feed it chunks of any size; it gives back the lines that became complete, without their LF."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._skipped = 0
        self._last = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversized]:
        """Yield every line that ends in this chunk, in order, to the end. Blank lines are left out."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            line = self._finished(chunk[start:end])
            if line and not (isinstance(line, bytes) and line.isspace()):
                yield line
            start = end + 1
        if start < len(chunk):
            self._keep(chunk[start:])

    def rest(self) -> bytes:
        """Return what stands behind the last LF and forget it; nothing where it is over the limit."""
        line = self._finished(b"")
        return b"" if isinstance(line, Oversized) else line

    def _keep(self, piece: bytes) -> None:
        """Take the beginning or the middle of a line."""
        if self._skipped or len(self._begun) + len(piece) > self._limit:
            self._skip(piece)
        else:
            self._begun += piece

    def _finished(self, piece: bytes) -> bytes | Oversized:
        """Return the line that this piece ends, and begin the next one."""
        if not self._skipped and len(self._begun) + len(piece) <= self._limit:
            if not self._begun:
                return piece
            line = bytes(self._begun) + piece
            self._begun = bytearray()
            return line
        self._skip(piece)
        oversized = Oversized(bytes(self._begun) + self._last, self._skipped)
        self._begun, self._skipped, self._last = bytearray(), 0, b""
        return oversized

    def _skip(self, piece: bytes) -> None:
        """Count a piece of a line that is over the limit, keeping the ends of the line."""
        if not self._skipped:
            self._skipped = len(self._begun)
            self._last = bytes(self._begun[-EDGE:])
            missing = EDGE - len(self._begun)
            self._begun = self._begun[:EDGE] + (piece[:missing] if missing > 0 else b"")
        self._skipped += len(piece)
        self._last = (self._last + piece[-EDGE:])[-EDGE:]
