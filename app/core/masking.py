"""The mask: known secret values, however encoded, in what the daemon itself writes. SPEC §references.

A text is looked at as it is, percent-decoded and JSON-unescaped. In each of these views the values are
searched plain and as the base64 that any surrounding bytes would give them. Every value and every base64 form
of it has at least ``GRAM`` bytes, so one dictionary of first ``GRAM`` bytes finds them all: the time grows with
the text, not with the number of secrets. Views are bytes: percent-encoding and base64 are about bytes.

Values of the operator's are known for ever. What comes and goes, as tokens do, belongs to an owner's
``PassingSecrets`` and is forgotten with it.
"""

import re
import weakref
from base64 import b64encode
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import unquote, unquote_plus

from typing_extensions import override

MASKED = "***"
SECRET_MIN = 8
"""Characters of the shortest value that is searched for."""
GRAM = 8
"""Bytes that every needle has at least; the shortest base64 form of SECRET_MIN bytes has ten."""
DECODE_MAX = 3
"""How often one encoding inside itself is undone, as for JSON inside a JSON string."""
PASSING_MAX = 128
"""Passing secrets that one owner has."""
PASSING_CHARACTERS_MAX = 256 * 1024
"""Characters of them all together."""

_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_JSON = re.compile(
    rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|([\"\\/bfnrt]))"
)
_SHORT = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}

_Range: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Needle:
    """Bytes that give a value away, and how many bytes beside them carry some of its bits."""

    searched: bytes
    before: int = 0
    after: int = 0

    @property
    def beginning(self) -> str:
        """Its first ``GRAM`` bytes, each as a character."""
        return self.searched[:GRAM].decode("latin-1")


@dataclass(frozen=True, slots=True)
class _View:
    """Bytes with their escapes decoded, and where each decoded escape came from."""

    data: bytes
    starts: Sequence[int]
    """Where in ``data`` the decoded escapes begin, ascending."""
    spans: Sequence[tuple[int, int, int]]
    """For each of them: its end in ``data``, and its start and end in the source."""

    def source_range(self, found: _Range) -> _Range:
        """Return the stretch of the source that the stretch of the view was decoded from."""
        start, end = found
        last = self._source_span(end - 1)[1]
        return self._source_span(start)[0], last

    def _source_span(self, position: int) -> _Range:
        index = bisect_right(self.starts, position) - 1
        if index < 0:
            return position, position + 1
        decoded_end, source_start, source_end = self.spans[index]
        if position < decoded_end:
            return source_start, source_end
        source = source_end + position - decoded_end
        return source, source + 1


class Mask:
    """The secret values known so far; shows none of them, not in its ``repr`` either."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._kept: set[str] = set()
        self._holders: dict[str, int] = {}
        """How often each known value is held."""
        self._needles: dict[str, list[_Needle]] = {}
        """By their first ``GRAM`` bytes, each as a character: Python finds text in text faster than bytes in bytes."""
        self._abandoned: deque[Iterable[str]] = deque()
        """What owners that are gone held. They only add to it: a collection of garbage may come in between anything."""
        self.add(values)

    @override
    def __repr__(self) -> str:
        """Say how many values there are."""
        return f"Mask({len(self._holders)} values)"

    def add(self, values: Iterable[str]) -> None:
        """Mask these values for ever; those shorter than SECRET_MIN characters are left out."""
        for value in values:
            if len(value) >= SECRET_MIN and value not in self._kept:
                self._kept.add(value)
                self._hold(value)

    def passing(self) -> "PassingSecrets":
        """Return the secrets of a new owner: none yet."""
        self._forget_abandoned()
        return PassingSecrets(self._hold, self._release, self._abandoned.append)

    def _forget_abandoned(self) -> None:
        while self._abandoned:
            for each in self._abandoned.popleft():
                self._release(each)

    def _hold(self, value: str) -> None:
        self._forget_abandoned()
        self._holders[value] = self._holders.get(value, 0) + 1
        if self._holders[value] == 1:
            for needle in _needles(value.encode("utf-8", "surrogatepass")):
                self._needles.setdefault(needle.beginning, []).append(needle)

    def _release(self, value: str) -> None:
        self._holders[value] -= 1
        if self._holders[value] > 0:
            return
        del self._holders[value]
        for needle in _needles(value.encode("utf-8", "surrogatepass")):
            beginning = needle.beginning
            self._needles[beginning].remove(needle)
            if not self._needles[beginning]:
                del self._needles[beginning]

    def mask(self, text: str) -> str:
        """Return the text with every stretch that shows a known value replaced by ``***``."""
        if not self._holders or len(text) < GRAM:
            return text
        # Most lines have no view but themselves, and are found to show nothing without another copy.
        if "%" not in text and "\\" not in text and text.isascii() and self._has_no_beginning(text):
            return text
        raw = text.encode("utf-8", "surrogatepass")
        found = self._search(raw)
        if b"%" in raw:
            found += self._search_decoded(raw, b"%", _percent_decoded)
        if b"\\" in raw:
            found += self._search_decoded(raw, b"\\", _json_unescaped)
        return _blotted(raw, found) if found else text

    def _has_no_beginning(self, characters: str) -> bool:
        """Return whether no needle begins in the text, as far as that shows sooner than by its characters."""
        needles = self._needles
        return len(needles) < len(characters) and not any(map(characters.__contains__, needles))

    def _search(self, data: bytes) -> list[_Range]:
        """Return the stretches that give a value away, in ascending order of their first needle byte."""
        needles, characters = self._needles, data.decode("latin-1")
        found: list[_Range] = []
        if self._has_no_beginning(characters):
            return found
        for start in range(len(data) - GRAM + 1):
            candidates = needles.get(characters[start : start + GRAM])
            if candidates is not None:
                found += [
                    (max(0, start - each.before), min(len(data), start + len(each.searched) + each.after))
                    for each in candidates
                    if data.startswith(each.searched, start)
                ]
        return found

    def _search_decoded(self, raw: bytes, mark: bytes, decode: Callable[[bytes], _View]) -> list[_Range]:
        """Return the stretches of ``raw`` that give a value away once decoded, however often that takes."""
        found: list[_Range] = []
        views: list[_View] = []
        data = raw
        while mark in data and len(views) < DECODE_MAX:
            view = decode(data)
            if not view.spans:
                break
            views.append(view)
            data = view.data
            for shown in self._search(data):
                stretch = shown
                for each in reversed(views):
                    stretch = each.source_range(stretch)
                found.append(stretch)
        return found


class PassingSecrets:
    """The secrets of one owner that come and go: masked while it lives, the latest of them, as many as may be."""

    def __init__(
        self,
        hold: Callable[[str], None],
        release: Callable[[str], None],
        abandon: Callable[[Iterable[str]], None],
    ) -> None:
        self._hold = hold
        self._release = release
        self._values: dict[str, None] = {}
        """The latest at the end."""
        self._characters = 0
        # Whatever holds it, nobody closes it: it is over when nobody can use its secrets any more.
        weakref.finalize(self, abandon, self._values).atexit = False

    @override
    def __repr__(self) -> str:
        """Say how many there are."""
        return f"PassingSecrets({len(self._values)} values)"

    def add(self, *values: str | None) -> None:
        """Mask these values, as the latest ones; what is absent, too short or too long is left out."""
        for value in values:
            if value is None or not SECRET_MIN <= len(value) <= PASSING_CHARACTERS_MAX:
                continue
            if value in self._values:
                del self._values[value]
            else:
                self._hold(value)
                self._characters += len(value)
            self._values[value] = None
        while len(self._values) > PASSING_MAX or self._characters > PASSING_CHARACTERS_MAX:
            oldest = next(iter(self._values))
            del self._values[oldest]
            self._characters -= len(oldest)
            self._release(oldest)

    def are_in(self, url: str) -> bool:
        """Return whether the URL shows one of them."""
        views = (url, unquote(url), unquote_plus(url))
        return any(value in view for value in self._values for view in views)


def _needles(value: bytes) -> Iterator[_Needle]:
    yield _Needle(value)
    if b" " in value:
        yield _Needle(value.replace(b" ", b"+"))  # as a form encodes blanks
    for offset in range(3):
        standard, before, after = _base64_form(value, offset)
        yield _Needle(standard, before, after)
        urlsafe = standard.translate(bytes.maketrans(b"+/", b"-_"))
        if urlsafe != standard:
            yield _Needle(urlsafe, before, after)


def _base64_form(value: bytes, offset: int) -> tuple[bytes, int, int]:
    """Return the digits that hold the value alone where it begins ``offset`` bytes into a group of three.

    With them, how many digits before and after hold some of its bits beside its neighbours'. RFC 4648 §4.
    """
    digits = b64encode(bytes(offset) + value)
    first = (offset * 8 + 5) // 6
    end, rest = divmod((offset + len(value)) * 8, 6)
    return digits[first:end], 1 if offset else 0, 1 if rest else 0


def _percent_decoded(source: bytes) -> _View:
    return _decoded(source, _PERCENT, lambda escape: bytes((int(escape[1], 16),)))


def _json_unescaped(source: bytes) -> _View:
    return _decoded(source, _JSON, _json_character)


def _json_character(escape: re.Match[bytes]) -> bytes:
    high, low, unit, short = escape.groups()
    if short is not None:
        return _SHORT.get(short, short)
    if unit is not None:
        return chr(int(unit, 16)).encode("utf-8", "surrogatepass")
    return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00).encode()


def _decoded(source: bytes, pattern: re.Pattern[bytes], decode: Callable[[re.Match[bytes]], bytes]) -> _View:
    pieces, starts, spans = list[bytes](), list[int](), list[tuple[int, int, int]]()
    position = copied = 0
    for escape in pattern.finditer(source):
        start, end = escape.span()
        character = decode(escape)
        pieces += (source[copied:start], character)
        position += start - copied
        starts.append(position)
        position += len(character)
        spans.append((position, start, end))
        copied = end
    pieces.append(source[copied:])
    return _View(b"".join(pieces), starts, spans)


def _blotted(raw: bytes, found: list[_Range]) -> str:
    """Return the text with the stretches replaced, those that touch or overlap by one mark together."""
    pieces, copied = list[str](), 0
    for start, end in sorted(found):
        if start > copied or not pieces:
            pieces.append(raw[copied:start].decode("utf-8", "surrogatepass"))
            pieces.append(MASKED)
        copied = max(copied, end)
    pieces.append(raw[copied:].decode("utf-8", "surrogatepass"))
    return "".join(pieces)
