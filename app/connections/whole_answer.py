"""An answer that came whole, in one piece, as nearly every answer to a call does. SPEC §connection.

It is read by httptools, whose parser is strict and takes a tenth of the time of one that can stop anywhere. What is not
that simple (another status, an encoding, a part of it, a second message, anything odd) is not judged here: it is
aiohttp's to read, from its first byte.
"""

from typing import Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

HEAD_MAX: Final = 8190
"""Bytes the head may have here; aiohttp bounds each of its lines by as much."""
_OK: Final = 200


class WholeAnswer(NamedTuple):
    """What an answer of status 200 says, after which its connection can have the next request."""

    content_type: str
    """Empty where there is none."""
    body: bytes


class WholeAnswers:
    """The reader of such answers; between two of them it keeps nothing, so one serves every connection of a loop."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._begin()

    def read(self, data: bytes) -> WholeAnswer | None:
        """Return the answer that the data are, all of them; None where they are anything else."""
        self._begin()
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._is_plain = False
        body, self._body = self._body, b""
        if self._messages == 1 and self._is_complete and self._is_plain and len(data) - len(body) <= HEAD_MAX:
            return WholeAnswer((self._content_type or b"").decode("utf-8", "surrogateescape"), body)
        self._parser = HttpResponseParser(self)
        return None

    def _begin(self) -> None:
        self._messages = 0
        self._content_type: bytes | None = None
        self._body = b""
        self._is_plain = True
        self._is_complete = False

    def on_message_begin(self) -> None:
        """Count a message."""
        self._messages += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take note of what the body is, as the first such header says; one behind the body is not simple."""
        name = name.lower()
        if name == b"content-type" and self._content_type is None:
            self._content_type = value.rstrip(b" \t")
        if name == b"content-encoding" or self._body:
            self._is_plain = False

    def on_body(self, body: bytes) -> None:
        """Take the body; one in several chunks is not simple."""
        if self._body:
            self._is_plain = False
        self._body = body

    def on_message_complete(self) -> None:
        """Judge the head."""
        parser = self._parser
        self._is_complete = parser.get_status_code() == _OK and parser.should_keep_alive()
