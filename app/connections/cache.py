"""Answers that servers let us keep for a while: in memory, bounded, least recently used first out. SPEC §watch.

Decides without awaiting and knows neither what it keeps nor who asks. An answer is kept in one of two places: the one
of its asker alone, or the one of all who would have got the same. Its life is counted from when it was asked for, as
RFC 9111 §4.2.3 counts it, so that a slow answer is never kept too long.
"""

from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from app.core.cache_control import CacheControl

ENTRIES_MAX: Final = 10_000
BYTES_MAX: Final = 64 * 1024 * 1024
SHARE_MAX: Final = 4
"""One answer may take this part of all bytes."""

Clock: TypeAlias = Callable[[], float]
"""Seconds that never go back."""
T = TypeVar("T")
_Key: TypeAlias = tuple[bytes, str]


@dataclass(frozen=True, slots=True)
class Places:
    """Where the answer to one question may lie."""

    own: bytes
    """Digest of the asker: answers that are private."""
    shared: bytes
    """Digest of what every asker of a public answer has in common."""
    name: str
    """What was asked: a list method, or the URI that is read."""

    @property
    def keys(self) -> tuple[_Key, _Key]:
        """Its own place and the shared one."""
        return (self.own, self.name), self.shared_key

    @property
    def shared_key(self) -> _Key:
        """The shared place."""
        return self.shared, self.name


@dataclass(eq=False, slots=True)
class Question:
    """One request under way whose answer may be kept."""

    places: Places
    number: int
    """Later questions have higher ones."""
    asked_at: float
    is_void: bool = False
    """What it will answer was declared stale meanwhile."""


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    value: T
    size: int
    fresh_until: float
    number: int


class Cache(Generic[T]):
    """The answers to one kind of question. One a daemon."""

    def __init__(self, *, clock: Clock, entries_max: int = ENTRIES_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._clock = clock
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._entries: OrderedDict[_Key, _Entry[T]] = OrderedDict()
        self._open: dict[_Key, set[Question]] = {}
        self._asked = 0
        self._size = 0

    def __len__(self) -> int:
        """Return how many answers are kept, stale ones included."""
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._size

    def get(self, places: Places) -> T | None:
        """Return a fresh answer, the asker's own before a shared one, or None."""
        for key in places.keys:
            entry = self._entries.get(key)
            if entry is None:
                continue
            if self._clock() < entry.fresh_until:
                self._entries.move_to_end(key)
                return entry.value
            self._drop(key)
        return None

    @contextmanager
    def asking(self, places: Places) -> Generator[Question]:
        """Give the question for as long as it is under way, so that ``invalidate`` reaches its answer."""
        self._asked += 1
        question = Question(places, self._asked, self._clock())
        questions = self._open.setdefault(places.shared_key, set())
        questions.add(question)
        try:
            yield question
        finally:
            questions.discard(question)
            if not questions and self._open.get(places.shared_key) is questions:
                del self._open[places.shared_key]

    def keep(self, question: Question, value: T, *, size: int, control: CacheControl) -> bool:
        """Keep the answer where and for as long as its server lets us; return whether others may have it now.

        What was kept of an earlier question goes, whatever becomes of this one; what a later one answered stays.
        """
        ttl_ms, scope = control
        fresh_until = question.asked_at + ttl_ms / 1000
        is_usable = not question.is_void and self._clock() < fresh_until
        is_latest = self._supersede(question)
        if is_usable and is_latest and size <= self._bytes_max // SHARE_MAX:
            own, shared = question.places.keys
            key = shared if scope == "public" else own
            self._entries[key] = _Entry(value, size, fresh_until, question.number)
            self._size += size
            self._evict()
        return is_usable and scope == "public"

    def invalidate(self, places: Places) -> None:
        """Forget the answer in both places, and keep none that is under way."""
        for key in places.keys:
            self._drop(key)
        for question in self._open.get(places.shared_key, ()):
            question.is_void = True

    def forget(self, *digests: bytes) -> None:
        """Forget every answer in these askers' places, and keep none that is under way for them."""
        for key in [key for key in self._entries if key[0] in digests]:
            self._drop(key)
        for questions in self._open.values():
            for question in questions:
                if question.places.own in digests or question.places.shared in digests:
                    question.is_void = True

    def _supersede(self, question: Question) -> bool:
        """Return whether no later question was answered; what earlier ones answered is dropped then."""
        kept = [key for key in question.places.keys if key in self._entries]
        if any(self._entries[key].number > question.number for key in kept):
            return False
        for key in kept:
            self._drop(key)
        return True

    def _evict(self) -> None:
        while len(self._entries) > self._entries_max or self._size > self._bytes_max:
            self._size -= self._entries.popitem(last=False)[1].size

    def _drop(self, key: _Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= entry.size
