"""Reads the data of server-sent events as strictly as the official AG-UI client does. AG-UI 1.0 HTTP binding.

Any byte that the client could not take fails the test: CR framing, fields other than ``data``.
"""


class EventReader:
    """Turns chunks of bytes into the data of whole events."""

    def __init__(self) -> None:
        self._buffer = b""
        self.comments: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of each event that the chunk completes."""
        assert b"\r" not in chunk, "events are framed by LF alone"
        *frames, self._buffer = (self._buffer + chunk).split(b"\n\n")
        return [data for frame in frames if (data := self._data(frame.decode())) is not None]

    def _data(self, frame: str) -> str | None:
        lines = frame.split("\n")
        self.comments += [line for line in lines if line.startswith(":")]
        fields = [line for line in lines if line and not line.startswith(":")]
        assert all(line.startswith("data: ") for line in fields), frame
        return "\n".join(line.removeprefix("data: ") for line in fields) or None
