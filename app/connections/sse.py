"""Server-sent events: bytes in any chunking to the data of each event, without any I/O. SPEC §connection.

The grammar of WHATWG HTML §9.2.6 as far as MCP uses it: only the data of events counts; their type, id and
retry do not, comments keep the connection alive and say nothing, and what the end cuts off is no event.
"""

from typing import Final

from app.core.answers import AnswerTooLarge

_BOM: Final = b"\xef\xbb\xbf"
_LF: Final = 0x0A
_CR: Final = 0x0D
_DATA: Final = b"data"


class EventStream:
    """The reader of one stream. Work is linear in the bytes fed, memory bounded by ``limit``."""

    __slots__ = ("_data", "_is_first_line", "_limit", "_line", "_size", "_skips_lf")

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._line = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._is_first_line = True
        self._skips_lf = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that the chunk completes, data lines joined by LF.

        Raises:
            AnswerTooLarge: one event has more than ``limit`` bytes of data, or one line is longer.
        """
        if self._skips_lf and chunk:
            self._skips_lf = False
            if chunk[0] == _LF:
                chunk = chunk[1:]
        if b"\n" not in chunk and b"\r" not in chunk:
            # The middle of a long line: nothing to split, and to search is far cheaper than to try.
            self._keep(chunk)
            return []
        events: list[bytes] = []
        for piece in chunk.splitlines(keepends=True):
            if piece[-1] not in {_LF, _CR}:
                self._keep(piece)
            elif (event := self._end_line(piece.rstrip(b"\r\n"))) is not None:
                events.append(event)
        self._skips_lf = chunk.endswith(b"\r") or (self._skips_lf and not chunk)
        return events

    def _keep(self, piece: bytes) -> None:
        """Hold the beginning of a line."""
        if len(self._line) + len(piece) + self._size > self._limit + len(_DATA) + 2 + len(_BOM):
            raise AnswerTooLarge(self._limit)
        self._line += piece

    def _end_line(self, rest: bytes) -> bytes | None:
        """Take one whole line; return the event's data where the line ends an event that has data."""
        if self._line:
            self._line += rest
            line = bytes(self._line)
            self._line.clear()
        else:
            line = rest
        if self._is_first_line:
            self._is_first_line = False
            line = line.removeprefix(_BOM)
        if line:
            self._take_field(line)
            return None
        event = b"\n".join(self._data) if self._data else None
        self._data.clear()
        self._size = 0
        return event

    def _take_field(self, line: bytes) -> None:
        """Add a data line to the event; other fields and comments pass."""
        if not line.startswith(_DATA):
            return
        if len(line) == len(_DATA):
            value = b""
        elif line[4:5] == b":":
            value = line[6:] if line[5:6] == b" " else line[5:]
        else:
            return
        self._size += len(value) + 1
        if self._size - 1 > self._limit:
            raise AnswerTooLarge(self._limit)
        self._data.append(value)
